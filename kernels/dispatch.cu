// SPDX-License-Identifier: BSD-3-Clause
// Dispatch of rows to experts and back on a GPU: one warp per row, and the choices of a
// row one after another.

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/source.hpp"
#include "kernels/cuda/stored.hpp"
#include "kernels/cuda/warp.hpp"
#include "kernels/dispatch.hpp"

namespace troupe::cuda {

namespace {

/// Calls use(column) for the first column of each pack that this thread processes.
template <int N, class Use>
__device__ void for_own_columns(int columns, const Use& use) {
  for (int c = threadIdx.x % warp_size * N; c < columns; c += warp_size * N)
    use(c);
}

template <int N>
__global__ void copy_to_places(const std::int32_t* positions, stored x, stored sent,
                               std::int64_t rows, int k, int columns) { // R, C
  const auto row = own_row();
  if (row >= rows)
    return;
  for_own_columns<N>(columns, [&](int c) {
    float values[N];
    x.load(row, c, values);
    for (int i = 0; i < k; ++i)
      if (const auto position = positions[row * k + i]; position >= 0)
        sent.store(position, c, values);
  });
}

/// \param weights null: all weights are 1
template <int N>
__global__ void add_from_places(const std::int32_t* positions, const float* weights,
                                stored sent, stored to, std::int64_t rows, int k,
                                int columns) {
  const auto row = own_row();
  if (row >= rows)
    return;
  for_own_columns<N>(columns, [&](int c) {
    float sum[N], values[N];
    to.load(row, c, sum);
    for (int i = 0; i < k; ++i)
      if (const auto position = positions[row * k + i]; position >= 0) {
        const float weight = weights == nullptr ? 1 : weights[row * k + i];
        sent.load(position, c, values);
        for (int j = 0; j < N; ++j)
          sum[j] += weight * values[j];
      }
    to.store(row, c, sum);
  });
}

template <int N>
__global__ void combine_gradients(const std::int32_t* positions, const float* weights,
                                  stored outputs, stored dy, stored doutputs,
                                  float* dweights, std::int64_t rows, int k,
                                  int columns) {
  const auto row = own_row();
  if (row >= rows)
    return;
  for (auto i = row * k; i < (row + 1) * k; ++i) {
    const auto position = positions[i];
    const float weight = weights[i];
    float sum = 0;
    if (position >= 0)
      for_own_columns<N>(columns, [&](int c) {
        float upper[N], output[N];
        dy.load(row, c, upper);
        outputs.load(position, c, output);
        for (int j = 0; j < N; ++j) {
          sum += upper[j] * output[j];
          upper[j] *= weight;
        }
        doutputs.store(position, c, upper);
      });
    sum = sum_over_warp(sum);
    if (threadIdx.x % warp_size == 0)
      dweights[i] = sum;
  }
}

/// The matrix of rows to which positions point; the number of rows is not known here.
input rows_of(const float* array, std::int64_t columns) {
  return dense(array, 0, columns);
}

void add_rows(const gate_table<float>& table, const float* weights, input sent,
              output to, stream_handle stream) {
  by_pack(
    [&](auto n) {
      launch(stream, {blocks_of(table.rows, warps_a_block), 1, 1},
             {block_threads, 1, 1}, 0, add_from_places<n>, table.positions, weights,
             stored_of(sent), stored_of(to), table.rows, table.rule.chosen,
             static_cast<int>(to.columns));
    },
    sent, to);
}

} // namespace

void dispatch::send(const gate_table<float>& table, matrix<const float> x, float* rows,
                    stream_handle stream) {
  const input from{x}, to = rows_of(rows, x.columns);
  by_pack(
    [&](auto n) {
      launch(stream, {blocks_of(table.rows, warps_a_block), 1, 1},
             {block_threads, 1, 1}, 0, copy_to_places<n>, table.positions,
             stored_of(from), stored_of(to), table.rows, table.rule.chosen,
             static_cast<int>(x.columns));
    },
    from, to);
}

void dispatch::combine(const gate_table<float>& table, const float* rows,
                       matrix<float> y, stream_handle stream) {
  add_rows(table, table.weights, rows_of(rows, y.columns), y, stream);
}

void dispatch::combine_gradient(const gate_table<float>& table, const float* rows,
                                matrix<const float> dy, float* drows, float* dweights,
                                stream_handle stream) {
  const input outputs = rows_of(rows, dy.columns), upper{dy},
              down = rows_of(drows, dy.columns);
  by_pack(
    [&](auto n) {
      launch(stream, {blocks_of(table.rows, warps_a_block), 1, 1},
             {block_threads, 1, 1}, 0, combine_gradients<n>, table.positions,
             table.weights, stored_of(outputs), stored_of(upper), stored_of(down),
             dweights, table.rows, table.rule.chosen, static_cast<int>(dy.columns));
    },
    outputs, upper, down);
}

void dispatch::send_gradient(const gate_table<float>& table, const float* drows,
                             matrix<float> dx, stream_handle stream) {
  add_rows(table, nullptr, rows_of(drows, dx.columns), dx, stream);
}

} // namespace troupe::cuda
