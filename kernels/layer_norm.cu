// SPDX-License-Identifier: BSD-3-Clause
// Layer norm on a GPU: one warp per row, which is read once if registers can hold the
// row.

#include "kernels/cuda/column_sums.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/row_packs.hpp"
#include "kernels/cuda/stored.hpp"
#include "kernels/cuda/warp.hpp"

namespace troupe::cuda {

namespace {

template <int N>
__global__ void normalise(stored x, const float* gain, const float* bias, stored y,
                          float* mean, float* rstd, std::int64_t rows, // R
                          int columns) {                               // C
  const auto row = own_row();
  if (row >= rows)
    return;
  const row_packs<N> inputs{x, row, columns}; // gains and biases stay in the L1 cache
  float values[N], factor[N], offset[N];
  float sum = 0;
  for_packs_of_row<N>(columns, [&](auto which, int) {
    inputs.get(which, values);
    for (const float value : values)
      sum += value;
  });
  const float m = sum_over_warp(sum) / static_cast<float>(columns);
  float squares = 0;
  for_packs_of_row<N>(columns, [&](auto which, int) {
    inputs.get(which, values);
    for (const float value : values)
      squares += (value - m) * (value - m);
  });
  const float s =
    1 / sqrtf(sum_over_warp(squares) / static_cast<float>(columns) + 1e-5F);
  for_packs_of_row<N>(columns, [&](auto which, int c) {
    inputs.get(which, values);
    stored_of(gain).load(0, c, factor);
    stored_of(bias).load(0, c, offset);
    for (int j = 0; j < N; ++j)
      values[j] = (values[j] - m) * s * factor[j] + offset[j];
    y.store(row, c, values);
  });
  if (threadIdx.x % warp_size == 0) {
    mean[row] = m;
    rstd[row] = s;
  }
}

/// dx = rstd (g - mean(g) - h mean(g h)) + dresidual, where h is the normalised x and
/// g = dy * gain.
template <int N>
__global__ void input_gradients(stored x, const float* gain, const float* mean,
                                const float* rstd, stored dy, stored dresidual,
                                stored dx, std::int64_t rows, int columns) {
  const auto row = own_row();
  if (row >= rows)
    return;
  const row_packs<N> inputs{x, row, columns}, upper{dy, row, columns};
  const float m = mean[row], s = rstd[row];
  float h[N], g[N], factor[N], residual[N] = {};
  const auto get = [&](auto which, int c) {
    inputs.get(which, h);
    upper.get(which, g);
    stored_of(gain).load(0, c, factor);
    for (int j = 0; j < N; ++j) {
      h[j] = (h[j] - m) * s;
      g[j] = __fmul_rn(g[j], factor[j]); // no FMA: the subtracted value is rounded too
    }
  };
  float sum = 0, sum_h = 0;
  for_packs_of_row<N>(columns, [&](auto which, int c) {
    get(which, c);
    for (int j = 0; j < N; ++j) {
      sum += g[j];
      sum_h += g[j] * h[j];
    }
  });
  const float mean_g = sum_over_warp(sum) / static_cast<float>(columns),
              mean_h = sum_over_warp(sum_h) / static_cast<float>(columns);
  for_packs_of_row<N>(columns, [&](auto which, int c) {
    get(which, c);
    if (dresidual.data != nullptr)
      dresidual.load(row, c, residual);
    for (int j = 0; j < N; ++j)
      g[j] = s * (g[j] - mean_g - h[j] * mean_h) + residual[j];
    dx.store(row, c, g);
  });
}

struct weight_terms {
  stored x;
  const float *mean, *rstd;
  stored dy;

  template <int N>
  struct bits {
    stored_bits<N> x, dy;
    float mean, rstd;
  };

  template <int N>
  __device__ bits<N> load(std::int64_t row, std::int64_t c) const {
    return {x.load_bits<N>(row, c), dy.load_bits<N>(row, c), mean[row], rstd[row]};
  }

  template <int N>
  __device__ void add(const bits<N>& from, float (&sums)[2][N]) const {
    float value[N], upper[N];
    x.numbers(from.x, value);
    dy.numbers(from.dy, upper);
    for (int i = 0; i < N; ++i) {
      sums[0][i] += upper[i] * (value[i] - from.mean) * from.rstd;
      sums[1][i] += upper[i];
    }
  }
};

} // namespace

void layer_norm::forward(input x, const float* gain, const float* bias, output y,
                         float* mean, float* rstd, stream_handle stream) {
  by_pack(
    [&](auto n) {
      launch(stream, {blocks_of(x.rows, warps_a_block), 1, 1}, {block_threads, 1, 1}, 0,
             normalise<n>, stored_of(x), gain, bias, stored_of(y), mean, rstd, x.rows,
             static_cast<int>(x.columns));
    },
    x, y, gain, bias);
}

void layer_norm::input_gradient(input x, const float* gain, const float* mean,
                                const float* rstd, input dy, input dresidual, output dx,
                                stream_handle stream) {
  by_pack(
    [&](auto n) {
      launch(stream, {blocks_of(x.rows, warps_a_block), 1, 1}, {block_threads, 1, 1}, 0,
             input_gradients<n>, stored_of(x), gain, mean, rstd, stored_of(dy),
             stored_of(dresidual), stored_of(dx), x.rows, static_cast<int>(x.columns));
    },
    x, dy, dresidual, dx, gain);
}

void layer_norm::weight_gradient(input x, const float* mean, const float* rstd,
                                 input dy, float beta, float* dgain, float* dbias,
                                 float* space, stream_handle stream) {
  launch_column_sums<2>(stream, x.rows, x.columns,
                        weight_terms{stored_of(x), mean, rstd, stored_of(dy)},
                        {dgain, dbias}, beta, space, x, dy);
}

} // namespace troupe::cuda
