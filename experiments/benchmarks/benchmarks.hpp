// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/run_result.hpp"
#include "experiments/benchmarks/measurement.hpp"
#include "experiments/options/setup.hpp"
#include "kernels/cuda/product_choices.hpp"

#include <nlohmann/json.hpp>
#include <tl/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace troupe {

/// The input of all measurements of bench: a model's shapes, the plan of its training,
/// and the function that receives each result.
struct benchmark {
  const options& asked; ///< The options of bench; outlive this object.
  /// Has a training; outlives this object. Measurements replace the schedule in copies.
  const run_plan& plan;
  model_options model;
  /// Receives each result, on the thread that measures.
  std::function<void(const measurement&)> report;
  std::int64_t gpu_side = 4096; ///< Side of the square matrices that a GPU multiplies.

  std::int64_t rows() const; ///< Rows of the largest microbatch: tokens, or images.
};

/// Computes one square fp32 product on the calling thread, the yardstick of arithmetic:
/// with oneDNN, or with troupe's sgemm() if the build has no oneDNN. `space` holds
/// three matrices of side x side values; the third receives the product.
/// \throws std::runtime_error if oneDNN fails
void yardstick_product(std::int64_t side, float* space);

/// The name of the yardstick in results: "sgemm" of oneDNN, or "troupe's sgemm".
const char* name_of_yardstick();

/// Computes products of bf16 blocks, packed and in the cache, on the calling thread:
/// the yardstick of products in bf16.
/// \pre for calls: the chosen path of bf16 products has blocks
class bf16_product {
public:
  bf16_product();

  /// Multiplications and additions of a call.
  static constexpr double operations = 2.0 * 32 * 512 * 256 * 32;
  void operator()() const;

private:
  std::vector<std::uint16_t> a_, b_;
  mutable std::vector<float> c_;
};

/// Seconds from the notification of a condition variable to the first instruction of
/// the waiting thread.
struct wake_times {
  double soon;           ///< After one millisecond of waiting.
  double after_a_second; ///< After one second of waiting.
};
/// Measures both times as medians.
wake_times measure_wake_times();

/// Measures the machine: products and copies of memory, on one core and on as many
/// cores as the plan has threads. Also measures each path of bf16 products on one core.
void measure_ceilings(const benchmark& b);

/// Measures the GPU of the first rank, in place of measure_ceilings(): products in
/// fp32, bf16 and tf32, and a copy of memory.
/// \pre b.plan.processor_of(0).is_gpu()
void measure_gpu(const benchmark& b);

/// Measures the rate of square products on one GPU, in operations a second.
/// \param where the GPU; `where.tf32` rounds the operands of fp32 products to tf32
/// \param side rows and columns of each matrix
double gpu_product_rate(const processor& where, precision product_precision,
                        std::int64_t side);

/// Measures the gaps between the actions of one stage on the GPU of the first rank, and
/// the host's time of an action.
/// \pre b.plan.processor_of(0).is_gpu()
void measure_actions(const benchmark& b);

/// Compares runs on the GPU of the first rank. Reports the number of parameters in
/// which two equal runs differ. If the network has at least `sharing_stages` blocks or
/// layers, also reports in how many parameters runs of one stage and of
/// `sharing_stages` differ. Reports the relative distance of the GPU's fp32 loss and
/// gradients from the CPU's.
/// \pre b.plan.processor_of(0).is_gpu()
void check_gpu_runs(const benchmark& b);

/// Number of batches of a run before the measured batches. On a GPU, lists of launches
/// become graphs in these batches, unless TROUPE_GRAPHS is off.
int warmup_batches(const run_plan& plan);

/// Stages that share a GPU when one stage and several stages are compared.
inline constexpr int sharing_stages = 4;

/// Returns the plan with 1F1B and `sharing_stages` stages on the GPU of the first rank.
/// \pre the plan has a training, whose network can be cut into `sharing_stages` stages
run_plan plan_of_sharing(const run_plan& plan, int steps);

/// Measures cuBLASLt's algorithms for the products of two steps of one stage on the GPU
/// of the first rank. Returns the table of the choices, and reports each choice.
/// \pre b.plan.processor_of(0).is_gpu()
cuda::product_choices measure_choices(const benchmark& b);

/// Writes the choices of measure_choices() to the CSV file `asked.run.choose`. Rows of
/// the file for other products stay. Returns the number of measured choices. The error
/// is one sentence.
/// \pre as for measure_choices()
tl::expected<std::size_t, std::string> write_choices(const benchmark& b);

/// Returns the plan with 1F1B and other numbers of stages and steps, by plan_of_steps()
/// (training_steps.hpp). The number of threads stays.
/// \pre the plan has a training, whose network can be cut into `stages` stages
run_plan plan_of_1f1b(run_plan plan, int stages, int steps);

/// Performs a plan in this process and returns the result.
/// \throws std::runtime_error if the run fails
run_result performed(const run_plan& plan);

/// Measures the main kernels at the model's shapes on one CPU thread, side by side with
/// a product or a copy of memory.
void measure_kernels(const benchmark& b);

/// Measures the plain loop and the same training through the actors of one stage, in
/// three turns. If the first rank has a GPU, both compute on this GPU. So does a
/// pipeline of `sharing_stages` stages, if the network has as many blocks or layers. On
/// a GPU no second or third turn begins after 20 seconds. On the CPU all this uses one
/// thread; the actors are then also measured with all threads of the plan.
void measure_training(const benchmark& b);

/// Measures the schedules of the catalog that allow 2 or 4 stages, as fractions of the
/// plain loop. If the plan's ranks have GPUs, the runs compute on these GPUs, and the
/// loop on the GPU of the first rank.
void measure_schedules(const benchmark& b);

/// Trains in rounds that alternate with PyTorch's programs, the rows of
/// `asked.comparison`. Returns the measurements as JSON for the results; a row without
/// numbers has null ratios and the reason, such as a missing PyTorch. The error is one
/// sentence: why no PyTorch program trains the same network in the same way.
/// \param to receives a line for each row, a heading and a line about the machine;
/// null: none
tl::expected<nlohmann::ordered_json, std::string>
measure_pytorch_comparison(const benchmark& b, std::FILE* to);

/// Measures links between processes, without encryption and by TLS: the throughput as a
/// fraction of a plain socket's, and the time of a small frame and its answer.
void measure_links(const benchmark& b);

/// Measures the overhead of actors: an action without arithmetic and a message, in both
/// clocks. If the plan has two threads or more, also the start of a ready action.
void measure_actors(const benchmark& b);

} // namespace troupe
