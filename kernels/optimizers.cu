// SPDX-License-Identifier: BSD-3-Clause
// Updates of parameters on a GPU: one pass over the bucket.

#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/warp.hpp"
#include "kernels/optimizers.hpp"

#include <variant>

namespace troupe::cuda {

namespace {

template <class Update>
struct updated_values {
  Update update;
  float scale;
  stored gradient, from, to;
  stored state[most_states];

  template <int N>
  __device__ void run(std::int64_t, std::int64_t i) const {
    float g[N], value[N], states[most_states][N];
    gradient.load(0, i, g);
    TROUPE_UNROLL
    for (int s = 0; s < Update::states; ++s)
      state[s].load(0, i, states[s]);
    from.load(0, i, value);
    TROUPE_UNROLL
    for (int k = 0; k < N; ++k) {
      float of_value[most_states];
      TROUPE_UNROLL
      for (int s = 0; s < Update::states; ++s)
        of_value[s] = states[s][k];
      value[k] = update(g[k], scale, value[k], of_value);
      TROUPE_UNROLL
      for (int s = 0; s < Update::states; ++s)
        states[s][k] = of_value[s];
    }
    TROUPE_UNROLL
    for (int s = 0; s < Update::states; ++s)
      state[s].store(0, i, states[s]);
    to.store(0, i, value);
  }
};

constexpr int sum_threads = 256;
constexpr std::int64_t values_a_part = 16 * sum_threads;

/// A block sums one part, and a thread every sum_threads-th value of the part.
__global__ void sum_part(const float* x, std::int64_t n, double* partial) {
  TROUPE_SHARED(double, warps, [sum_threads / warp_size]);
  const auto first = std::int64_t{blockIdx.x} * values_a_part;
  const auto last = first + values_a_part < n ? first + values_a_part : n;
  double sum = 0;
  for (auto i = first + threadIdx.x; i < last; i += sum_threads)
    sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  sum = sum_over_block(sum, warps);
  if (threadIdx.x == 0)
    partial[blockIdx.x] = sum;
}

__global__ void sum_parts_of(const double* partial, std::int64_t n, double* to) {
  TROUPE_SHARED(double, warps, [sum_threads / warp_size]);
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += sum_threads)
    sum += partial[i];
  sum = sum_over_block(sum, warps);
  if (threadIdx.x == 0)
    *to = sum;
}

} // namespace

void optimizers::update_values(const value_update& update, float scale,
                               const update_arrays& arrays, std::int64_t n,
                               stream_handle stream) {
  std::visit(
    [&]<class Update>(const Update& update_value) {
      const auto launch_with = [&](const auto&... states) {
        const auto& a = arrays;
        const updated_values<Update> body{
          update_value,      scale,           stored_of(a.gradient),
          stored_of(a.from), stored_of(a.to), {stored_of(states)...}};
        for_each_pack(stream, 1, n, body, a.gradient, a.from, a.to, states...);
      };
      if constexpr (Update::states == 0)
        launch_with();
      else if constexpr (Update::states == 1)
        launch_with(arrays.state[0]);
      else
        launch_with(arrays.state[0], arrays.state[1]);
    },
    update);
}

std::int64_t optimizers::sum_parts(std::int64_t n) {
  return (n + values_a_part - 1) / values_a_part;
}

void optimizers::sum_of_squares(const float* x, std::int64_t n, double* partial,
                                double* sum, stream_handle stream) {
  const auto parts = sum_parts(n);
  if (parts > 0)
    launch(stream, {static_cast<unsigned>(parts), 1, 1}, {sum_threads, 1, 1}, 0,
           sum_part, x, n, partial);
  launch(stream, {1, 1, 1}, {sum_threads, 1, 1}, 0, sum_parts_of,
         static_cast<const double*>(partial), parts, sum);
}

} // namespace troupe::cuda
