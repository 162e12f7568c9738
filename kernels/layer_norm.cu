// Layer norm on a GPU: a warp a row.

#include "kernels/cuda/column_sums.hpp"
#include "kernels/cuda/kernels.hpp"
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
  const int first = threadIdx.x % warp_size * N;
  float values[N], factor[N], offset[N];
  float sum = 0;
  for (int c = first; c < columns; c += warp_size * N) {
    x.load(row, c, values);
    for (int i = 0; i < N; ++i)
      sum += values[i];
  }
  const float m = sum_over_warp(sum) / static_cast<float>(columns);
  float squares = 0;
  for (int c = first; c < columns; c += warp_size * N) {
    x.load(row, c, values);
    for (int i = 0; i < N; ++i)
      squares += (values[i] - m) * (values[i] - m);
  }
  const float s =
    1 / sqrtf(sum_over_warp(squares) / static_cast<float>(columns) + 1e-5F);
  for (int c = first; c < columns; c += warp_size * N) {
    x.load(row, c, values);
    stored_of(gain).load(0, c, factor);
    stored_of(bias).load(0, c, offset);
    for (int i = 0; i < N; ++i)
      values[i] = (values[i] - m) * s * factor[i] + offset[i];
    y.store(row, c, values);
  }
  if (first == 0) {
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
  const int first = threadIdx.x % warp_size * N;
  const float m = mean[row], s = rstd[row];
  float h[N], g[N], factor[N], residual[N];
  const auto load = [&](int c) {
    x.load(row, c, h);
    dy.load(row, c, g);
    stored_of(gain).load(0, c, factor);
    for (int i = 0; i < N; ++i) {
      h[i] = (h[i] - m) * s;
      g[i] *= factor[i];
    }
  };
  float sum = 0, sum_h = 0;
  for (int c = first; c < columns; c += warp_size * N) {
    load(c);
    for (int i = 0; i < N; ++i) {
      sum += g[i];
      sum_h += g[i] * h[i];
    }
  }
  const float mean_g = sum_over_warp(sum) / static_cast<float>(columns),
              mean_h = sum_over_warp(sum_h) / static_cast<float>(columns);
  for (int c = first; c < columns; c += warp_size * N) {
    load(c);
    for (int i = 0; i < N; ++i)
      residual[i] = 0;
    if (dresidual.data != nullptr)
      dresidual.load(row, c, residual);
    for (int i = 0; i < N; ++i)
      g[i] = s * (g[i] - mean_g - h[i] * mean_h) + residual[i];
    dx.store(row, c, g);
  }
}

struct weight_terms {
  stored x;
  const float *mean, *rstd;
  stored dy;
  float* to[2]; // dgain, dbias

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
                         float* mean, float* rstd, stream_handle on) {
  by_pack(
    [&](auto n) {
      launch(on, {blocks_of(x.rows, warps_a_block), 1, 1}, {block_threads, 1, 1}, 0,
             normalise<n>, stored_of(x), gain, bias, stored_of(y), mean, rstd, x.rows,
             static_cast<int>(x.columns));
    },
    x, y, gain, bias);
}

void layer_norm::input_gradient(input x, const float* gain, const float* mean,
                                const float* rstd, input dy, input dresidual, output dx,
                                stream_handle on) {
  by_pack(
    [&](auto n) {
      launch(on, {blocks_of(x.rows, warps_a_block), 1, 1}, {block_threads, 1, 1}, 0,
             input_gradients<n>, stored_of(x), gain, mean, rstd, stored_of(dy),
             stored_of(dresidual), stored_of(dx), x.rows, static_cast<int>(x.columns));
    },
    x, dy, dresidual, dx, gain);
}

void layer_norm::weight_gradient(input x, const float* mean, const float* rstd,
                                 input dy, float beta, float* dgain, float* dbias,
                                 stream_handle on) {
  launch_column_sums<2>(
    on, x.rows, x.columns,
    weight_terms{stored_of(x), mean, rstd, stored_of(dy), {dgain, dbias}}, beta, x, dy);
}

} // namespace troupe::cuda
