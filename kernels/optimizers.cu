// SPDX-License-Identifier: BSD-3-Clause
// Updates of parameters on a GPU: one pass over the bucket.

#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/warp.hpp"
#include "kernels/optimizers.hpp"

#include <cmath>

namespace troupe::cuda {

namespace {

struct adamw_values {
  float beta1, rest1, beta2, rest2, decay, step, root, epsilon, scale;
  stored gradient, from, to, mean, square;

  template <int N>
  __device__ void run(std::int64_t, std::int64_t i) const {
    float g[N], m[N], v[N], value[N];
    gradient.load(0, i, g);
    mean.load(0, i, m);
    square.load(0, i, v);
    from.load(0, i, value);
    for (int k = 0; k < N; ++k) {
      g[k] *= scale;
      m[k] = beta1 * m[k] + rest1 * g[k];
      v[k] = beta2 * v[k] + rest2 * g[k] * g[k];
      value[k] = value[k] * decay - step * m[k] / (sqrtf(v[k]) * root + epsilon);
    }
    mean.store(0, i, m);
    square.store(0, i, v);
    to.store(0, i, value);
  }
};

struct sgd_values {
  float rate, momentum, decay, scale;
  stored gradient, from, to, velocity; // no velocity without momentum

  template <int N>
  __device__ void run(std::int64_t, std::int64_t i) const {
    float g[N], value[N], v[N] = {};
    gradient.load(0, i, g);
    from.load(0, i, value);
    if (momentum != 0)
      velocity.load(0, i, v);
    for (int k = 0; k < N; ++k) {
      v[k] = momentum * v[k] + (g[k] * scale + decay * value[k]);
      value[k] -= rate * v[k];
    }
    if (momentum != 0)
      velocity.store(0, i, v);
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

void optimizers::adamw(const adamw_step& update, float scale, const float* gradient,
                       const float* from, float* to, float* mean, float* square,
                       std::int64_t n, stream_handle stream) {
  const auto t = static_cast<double>(update.number);
  const adamw_values body{
    static_cast<float>(update.beta1),
    static_cast<float>(1 - update.beta1),
    static_cast<float>(update.beta2),
    static_cast<float>(1 - update.beta2),
    static_cast<float>(1 - update.rate * update.weight_decay),
    static_cast<float>(update.rate / (1 - std::pow(update.beta1, t))),
    static_cast<float>(1 / std::sqrt(1 - std::pow(update.beta2, t))),
    static_cast<float>(update.epsilon),
    scale,
    stored_of(gradient),
    stored_of(from),
    stored_of(to),
    stored_of(mean),
    stored_of(square)};
  for_each_pack(stream, 1, n, body, gradient, from, to, mean, square);
}

void optimizers::sgd(const sgd_step& update, float scale, const float* gradient,
                     const float* from, float* to, float* velocity, std::int64_t n,
                     stream_handle stream) {
  const sgd_values body{static_cast<float>(update.rate),
                        static_cast<float>(update.momentum),
                        static_cast<float>(update.weight_decay),
                        scale,
                        stored_of(gradient),
                        stored_of(from),
                        stored_of(to),
                        stored_of(velocity)};
  for_each_pack(stream, 1, n, body, gradient, from, to, velocity);
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
