// SPDX-License-Identifier: BSD-3-Clause
// Copies, sums and zeros of arrays on a GPU.

#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/kernels.hpp"

namespace troupe::cuda {

namespace {

struct copy_values {
  stored from, to;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float values[N];
    from.load(row, column, values);
    to.store(row, column, values);
  }
};

struct add_values {
  stored from, to;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float values[N], sum[N];
    from.load(row, column, values);
    to.load(row, column, sum);
    for (int i = 0; i < N; ++i)
      sum[i] += values[i];
    to.store(row, column, sum);
  }
};

struct clear_values {
  stored to;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const float zeros[N] = {};
    to.store(row, column, zeros);
  }
};

} // namespace

void arrays::copy(input from, output to, stream_handle stream) {
  for_each_pack(stream, from.rows, from.columns,
                copy_values{stored_of(from), stored_of(to)}, from, to);
}

void arrays::add(const float* from, std::int64_t n, float* to, stream_handle stream) {
  for_each_pack(stream, 1, n, add_values{stored_of(from), stored_of(to)}, from, to);
}

void arrays::clear(std::int64_t n, float* to, stream_handle stream) {
  for_each_pack(stream, 1, n, clear_values{stored_of(to)}, to);
}

} // namespace troupe::cuda
