// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/run_result.hpp"
#include "experiments/benchmarks/measurement.hpp"
#include "experiments/options/setup.hpp"

#include <nlohmann/json.hpp>
#include <tl/expected.hpp>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

namespace troupe {

/// What bench measures: a model's shapes, and how it would be trained.
struct benchmark {
  const options& asked;
  const run_plan& plan; ///< Its schedule is replaced.
  model_options model;
  std::function<void(const measurement&)> report;
  std::int64_t gpu_edge = 4096; ///< Of a GPU's square products.

  std::int64_t rows() const; ///< Tokens or images of a microbatch.
};

/// A square product by oneDNN on this thread, the yardstick of arithmetic. `space`
/// holds three matrices of edge x edge.
void onednn_product(std::int64_t edge, float* space);

/// Blocks of products of bf16, packed and in the cache, on this thread: the yardstick
/// where products are of those. \pre the path that is used has blocks
class bf16_product {
public:
  bf16_product();

  static constexpr double operations = 2.0 * 32 * 512 * 256 * 32;
  void operator()() const;

private:
  std::vector<std::uint16_t> a_, b_;
  mutable std::vector<float> c_;
};

/// Seconds from the notification of a condition variable to the first instruction of
/// the thread that waits for it.
struct wake_times {
  double soon; ///< After a millisecond of waiting.
  double after_a_second;
};
wake_times measure_wake_times();

/// The machine: products and copies of memory, on one core and on all.
void measure_ceilings(const benchmark& b);

/// The GPU of the first rank, in place of the machine: products and a copy.
void measure_gpu(const benchmark& b);

/// Operations a second of square products there.
double gpu_product_rate(const processor& where, precision by, std::int64_t edge);

/// What lies between actions there, and checks: bits of two runs, and those of the CPU
/// in fp32.
void measure_gpu_runs(const benchmark& b);

/// A plan's training by 1F1B in other sizes, on as many threads as before.
run_plan plan_of_1f1b(run_plan plan, int stages, int steps);

/// \throws std::runtime_error if the run fails
run_result performed(const run_plan& plan);

/// Each kernel at the model's shapes, beside a product or a copy of memory.
void measure_kernels(const benchmark& b);

/// The bare loop, the same through one stage's actors, and pipelines. Where ranks
/// compute on GPUs, all of it there.
void measure_training(const benchmark& b);

/// Trains in rounds beside the programs of PyTorch that `asked.beside` names. Returns
/// what was measured, for results: null ratios of rows without numbers, with the
/// reason. On error says why the training is none of theirs. \param to a line for each
/// row; null: none
tl::expected<nlohmann::ordered_json, std::string>
measure_beside_pytorch(const benchmark& b, std::FILE* to);

/// Links between processes: what they carry, beside the socket's own speed.
void measure_links(const benchmark& b);

/// What it costs to be an actor: actions without arithmetic, in both clocks, and how
/// soon a ready action starts.
void measure_actors(const benchmark& b);

} // namespace troupe
