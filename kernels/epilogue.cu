// SPDX-License-Identifier: BSD-3-Clause
// Epilogues of products on a GPU.

#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/gelu_value.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/epilogue.hpp"

namespace troupe::cuda {

namespace {

struct finish_values {
  epilogue_kind kind;
  stored product;
  const float* bias;
  stored x, y;
  matrix<std::uint8_t> mask;
  stored c;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float values[N];
    product.load(row, column, values);
    if (bias != nullptr)
      add(stored_of(bias), 0, column, values);
    switch (kind) {
    case epilogue_kind::none:
    case epilogue_kind::bias:
      break;
    case epilogue_kind::bias_gelu:
      apply_gelu(row, column, values);
      break;
    case epilogue_kind::bias_relu:
      for (int i = 0; i < N; ++i) {
        mask.data[row * mask.stride + column + i] = values[i] > 0;
        values[i] = values[i] < 0 ? 0 : values[i];
      }
      break;
    case epilogue_kind::bias_residual:
      add(x, row, column, values);
      break;
    case epilogue_kind::gelu_gradient:
      multiply_by_slope(row, column, values);
      break;
    }
    c.store(row, column, values);
  }

private:
  template <int N>
  __device__ static void add(const stored& from, std::int64_t row, std::int64_t column,
                             float (&values)[N]) {
    float added[N];
    from.load(row, column, added);
    for (int i = 0; i < N; ++i)
      values[i] += added[i];
  }

  template <int N>
  __device__ void apply_gelu(std::int64_t row, std::int64_t column,
                             float (&values)[N]) const {
    float out[N];
    for (int i = 0; i < N; ++i)
      out[i] = gelu_at(values[i]).value;
    y.store(row, column, out);
  }

  template <int N>
  __device__ void multiply_by_slope(std::int64_t row, std::int64_t column,
                                    float (&values)[N]) const {
    float at[N];
    x.load(row, column, at);
    for (int i = 0; i < N; ++i)
      values[i] *= gelu_at(at[i]).slope;
  }
};

} // namespace

void epilogues::finish(matrix<const float> product, const epilogue<float>& end,
                       output c, stream_handle stream) {
  const input from{product};
  for_each_pack(stream, product.rows, product.columns,
                finish_values{end.kind, stored_of(from), end.bias, stored_of(end.x),
                              stored_of(end.y), end.mask, stored_of(c)},
                from, end.bias, end.x, end.y, c);
}

} // namespace troupe::cuda
