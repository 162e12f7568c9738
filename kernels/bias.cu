// SPDX-License-Identifier: BSD-3-Clause
// Operations of a bias outside of a product, on a GPU.

#include "kernels/cuda/column_sums.hpp"
#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/kernels.hpp"

namespace troupe::cuda {

namespace {

struct add_bias_and_residual {
  stored product;
  const float* bias;
  stored x, y;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float sum[N], offset[N], residual[N];
    product.load(row, column, sum);
    stored_of(bias).load(0, column, offset);
    x.load(row, column, residual);
    for (int i = 0; i < N; ++i)
      sum[i] = (sum[i] + offset[i]) + residual[i];
    y.store(row, column, sum);
  }
};

struct bias_terms {
  stored dy;

  template <int N>
  using bits = stored_bits<N>;

  template <int N>
  __device__ bits<N> load(std::int64_t row, std::int64_t c) const {
    return dy.load_bits<N>(row, c);
  }

  template <int N>
  __device__ void add(const bits<N>& from, float (&sums)[1][N]) const {
    float upper[N];
    dy.numbers(from, upper);
    for (int i = 0; i < N; ++i)
      sums[0][i] += upper[i];
  }
};

} // namespace

void bias::add_with_residual(matrix<const float> product, const float* bias, input x,
                             output y, stream_handle stream) {
  for_each_pack(
    stream, product.rows, product.columns,
    add_bias_and_residual{stored_of(input{product}), bias, stored_of(x), stored_of(y)},
    input{product}, bias, x, y);
}

void bias::gradient(input dy, float beta, float* dbias, float* space,
                    stream_handle stream) {
  launch_column_sums<1>(stream, dy.rows, dy.columns, bias_terms{stored_of(dy)}, {dbias},
                        beta, space, dy);
}

} // namespace troupe::cuda
