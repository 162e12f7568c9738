// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/library_checks.hpp"

#include "kernels/attention.hpp"
#include "kernels/cuda/epilogue_check.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/space_allocator.hpp"
#include "kernels/switched_off.hpp"

#include <cmath>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace troupe::cuda {

namespace {

// The shortest length that all versions of cuDNN accept.
constexpr attention_shape compared{
  .sequences = 1, .length = 128, .heads = 2, .width = 128};
constexpr auto rows = compared.sequences * compared.length,
               row_values = rows * compared.heads;
constexpr double most_difference = 1e-2;

/// Memory that both sides access, for the arrays of one attention.
struct attention_arrays {
  explicit attention_arrays(memory_space& space)
    : qkv(3 * rows * compared.width, space_allocator<bf16>{space}),
      y(rows * compared.width, qkv.get_allocator()),
      dy(rows * compared.width, qkv.get_allocator()),
      dqkv(3 * rows * compared.width, qkv.get_allocator()),
      log_sum(row_values, space_allocator<float>{space}) {
    fill(qkv);
    fill(dy);
  }

  /// Numbers from -2 to 2 without a pattern.
  static void fill(vector_in<bf16>& array) {
    std::uint32_t state = 1;
    for (auto& value : array) {
      state = state * 1664525U + 1013904223U;
      value.bits = bf16_of(static_cast<float>(state >> 8) / (1 << 22) - 2);
    }
  }

  static matrix<bf16> rows_of(vector_in<bf16>& array) {
    return dense(array.data(), rows, std::ssize(array) / rows);
  }

  vector_in<bf16> qkv, y, dy, dqkv;
  vector_in<float> log_sum;
};

float number(bf16 value) {
  return fp32_of(value.bits);
}

float number(float value) {
  return value;
}

/// Norm of a difference over the norm of `right`, in rows of `columns` values without
/// gaps, columns [first, first + count). NaN if a value is.
template <class Value>
double difference(const vector_in<Value>& left, const vector_in<Value>& right,
                  std::size_t columns, std::size_t first, std::size_t count) {
  double apart = 0, norm = 0;
  for (auto row = first; row < left.size(); row += columns)
    for (auto i = row; i < row + count; ++i) {
      const double its = number(right[i]), gap = number(left[i]) - its;
      apart += gap * gap;
      norm += its * its;
    }
  return std::sqrt(apart / norm);
}

std::string difference_of(const attention_arrays& its, const attention_arrays& ours) {
  constexpr std::size_t C = compared.width;
  const std::pair<const char*, double> differences[] = {
    {"outputs", difference(its.y, ours.y, C, 0, C)},
    {"log sums", difference(its.log_sum, ours.log_sum, row_values, 0, row_values)},
    {"gradients of queries", difference(its.dqkv, ours.dqkv, 3 * C, 0, C)},
    {"gradients of keys", difference(its.dqkv, ours.dqkv, 3 * C, C, C)},
    {"gradients of values", difference(its.dqkv, ours.dqkv, 3 * C, 2 * C, C)}};
  for (const auto& [name, found] : differences)
    if (!(found < most_difference)) // also NaN
      return "cuDNN's attention is not used: its " + std::string{name}
             + " differ from this program's by " + std::to_string(found);
  return {};
}

/// Runs one attention on the stream, by kernels of this program and by the library.
std::string compare_attention(stream& on) {
  auto& space = unified_memory(on.gpu());
  attention_arrays ours{space}, its{space};
  const auto of = attention_arrays::rows_of;
  attention::forward(compared, of(ours.qkv), of(ours.y), ours.log_sum.data(),
                     on.handle());
  attention::backward(
    compared, of(ours.qkv), of(ours.y), ours.log_sum.data(), of(ours.dy), of(ours.dqkv),
    static_cast<float*>(on.space(workspace::rows, 4 * row_values)), on.handle());
  on.wait();
  try {
    if (!on.attention_forward(compared, of(its.qkv), of(its.y), its.log_sum.data())
        || !on.attention_backward(compared, of(its.qkv), of(its.y), its.log_sum.data(),
                                  of(its.dy), of(its.dqkv)))
      return "cuDNN's attention is not used: cuDNN has no algorithm for this GPU";
    on.wait();
  } catch (const std::runtime_error& error) {
    return std::string{"cuDNN's attention is not used: "} + error.what();
  }
  return difference_of(its, ours);
}

/// Outcomes for each GPU.
struct outcomes {
  std::mutex lock;
  std::map<int, std::string> attention;
  std::map<int, accepted_epilogues> epilogues;
  std::map<int, gpu_libraries> last;
};

outcomes& known() {
  static outcomes all;
  return all;
}

/// The outcome of the comparison, which the first stream of a GPU makes.
std::string comparison_on(stream& gpu_stream) {
  auto& outcomes = known().attention;
  const auto match = outcomes.find(gpu_stream.gpu());
  if (match != outcomes.end())
    return match->second;
  return outcomes[gpu_stream.gpu()] = compare_attention(gpu_stream);
}

/// A version as text: "9.19.0" for 91900.
std::string version_text(std::int64_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100)
         + "." + std::to_string(version % 100);
}

} // namespace

std::string use_attention_library(stream& gpu_stream) {
  const std::lock_guard guard{known().lock};
  auto why = switched_off("TROUPE_CUDNN") ? std::string{"TROUPE_CUDNN says off"}
                                          : gpu_stream.load_attention();
  if (why.empty() && !(why = comparison_on(gpu_stream)).empty())
    gpu_stream.unload_attention();
  known().last[gpu_stream.gpu()].attention =
    why.empty() ? "cuDNN " + version_text(gpu_stream.attention_version()) : why;
  return why;
}

std::string use_library_epilogues(stream& gpu_stream) {
  std::string why = "TROUPE_EPILOGUES says off";
  const std::lock_guard guard{known().lock};
  if (!switched_off("TROUPE_EPILOGUES")) {
    auto& outcomes = known().epilogues;
    auto match = outcomes.find(gpu_stream.gpu());
    if (match == outcomes.end())
      match =
        outcomes
          .emplace(gpu_stream.gpu(),
                   compare_epilogues(gpu_stream, unified_memory(gpu_stream.gpu())))
          .first;
    for (const auto kind : match->second.kinds)
      gpu_stream.accept_epilogue(kind, true);
    why = match->second.errors;
  }
  known().last[gpu_stream.gpu()].epilogues =
    why.empty() ? "cuBLASLt " + version_text(gpu_stream.product_version()) : why;
  return why;
}

gpu_libraries libraries_of(int gpu) {
  const std::lock_guard guard{known().lock};
  const auto match = known().last.find(gpu);
  return match == known().last.end() ? gpu_libraries{} : match->second;
}

} // namespace troupe::cuda
