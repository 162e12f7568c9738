// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/optimizers.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

namespace troupe {

namespace {

/// Calls update(first, last) for ranges of n values. Ranges end where a vector ends, so
/// that each value is computed as in a single range.
template <class Update>
void by_ranges(std::int64_t n, stream& stream, const Update& update) {
  constexpr std::int64_t together = 64, blocks_a_range = 256;
  stream.cpu().run_ranges((n + together - 1) / together, blocks_a_range,
                          [&](std::int64_t first, std::int64_t last, int) {
                            update(first * together, std::min(n, last * together));
                          });
}

} // namespace

void update_values(const value_update& update, float scale, const update_arrays& arrays,
                   std::int64_t n, stream& stream) {
  if constexpr (cuda::may_run<float>)
    if (auto* const gpu = stream.gpu())
      return cuda::optimizers::update_values(update, scale, arrays, n, gpu->handle());
  std::visit(
    [&]<class Update>(const Update& update_value) {
      by_ranges(n, stream, [=](std::int64_t first, std::int64_t last) {
        const auto [gradient, from, to, state] = arrays;
        for (auto i = first; i < last; ++i) {
          std::array<float, Update::states> local;
          for (std::size_t s = 0; s < local.size(); ++s)
            local[s] = state[s][i];
          to[i] = update_value(gradient[i], scale, from[i], local.data());
          for (std::size_t s = 0; s < local.size(); ++s)
            state[s][i] = local[s];
        }
      });
    },
    update);
}

namespace {

double sum_of_squares(std::span<const float> x) {
  double sum = 0;
  for (const float value : x)
    sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

/// The same in several sums, which vector instructions add at once.
double squares_by_lanes(std::span<const float> x) {
  constexpr std::size_t lanes = 16;
  std::array<double, lanes> sums{};
  const auto whole = x.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) {
      const auto value = static_cast<double>(x[i + k]);
      sums[k] += value * value;
    }
  double total = sum_of_squares(x.subspan(whole));
  for (const double sum : sums)
    total += sum;
  return total;
}

/// Launches the sums one after another. Waits for the GPU whenever all result buffers
/// are in use, because taking more buffers may wait for the GPU.
[[maybe_unused]] std::vector<double>
sums_on(cuda::stream& gpu, const std::vector<std::span<const float>>& arrays) {
  constexpr std::size_t buffer_count = 8,
                        sums_a_buffer = cuda::stream::result_bytes / sizeof(double);
  std::array<std::shared_ptr<void>, buffer_count> buffers;
  for (auto& entry : buffers)
    entry = gpu.result();
  const auto sum = [&](std::size_t i) {
    return static_cast<double*>(buffers[i / sums_a_buffer].get()) + i % sums_a_buffer;
  };
  std::vector<double> result;
  while (result.size() < arrays.size()) {
    const auto first = result.size(),
               count = std::min(arrays.size() - first, buffer_count * sums_a_buffer);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& x = arrays[first + i];
      auto* const partial = static_cast<double*>(gpu.space(
        cuda::workspace::rows, 8 * cuda::optimizers::sum_parts(std::ssize(x))));
      cuda::optimizers::sum_of_squares(x.data(), std::ssize(x), partial, sum(i),
                                       gpu.handle());
    }
    gpu.wait();
    for (std::size_t i = 0; i < count; ++i)
      result.push_back(*sum(i));
  }
  return result;
}

} // namespace

double total_of_squares(const std::vector<std::span<const float>>& arrays,
                        stream& stream) {
  constexpr std::int64_t slice = 1 << 16;
  double total = 0;
  for (const auto& x : arrays) {
    const auto slices = (std::ssize(x) + slice - 1) / slice;
    std::vector<double> sums(static_cast<std::size_t>(slices));
    stream.cpu().run_ranges(slices, 1, [&](std::int64_t first, std::int64_t last, int) {
      for (auto i = first; i < last; ++i) {
        const auto begin = static_cast<std::size_t>(i * slice);
        sums[static_cast<std::size_t>(i)] = squares_by_lanes(
          x.subspan(begin, std::min<std::size_t>(slice, x.size() - begin)));
      }
    });
    for (const double sum : sums)
      total += sum;
  }
  return total;
}

std::vector<double> sums_of_squares(const std::vector<std::span<const float>>& arrays,
                                    stream& stream) {
  if constexpr (cuda::may_run<float>)
    if (auto* const gpu = stream.gpu())
      return sums_on(*gpu, arrays);
  std::vector<double> result(arrays.size());
  std::ranges::transform(arrays, result.begin(), sum_of_squares);
  return result;
}

} // namespace troupe
