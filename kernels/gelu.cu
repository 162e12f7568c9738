// GELU on a GPU.

#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/gelu_value.hpp"
#include "kernels/cuda/kernels.hpp"

namespace troupe::cuda {

namespace {

struct gelu_forward {
  stored x, y;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float values[N];
    x.load(row, column, values);
    for (int i = 0; i < N; ++i)
      values[i] = gelu_at(values[i]).value;
    y.store(row, column, values);
  }
};

struct gelu_backward {
  stored x, dy, dx;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float values[N], upper[N];
    x.load(row, column, values);
    dy.load(row, column, upper);
    for (int i = 0; i < N; ++i)
      upper[i] *= gelu_at(values[i]).slope;
    dx.store(row, column, upper);
  }
};

} // namespace

void gelu::forward(matrix<const float> x, matrix<float> y, queue on) {
  const input from{x};
  const output to{y};
  for_each_pack(on, x.rows, x.columns, gelu_forward{stored_of(from), stored_of(to)},
                from, to);
}

void gelu::backward(matrix<const float> x, matrix<const float> dy, matrix<float> dx,
                    queue on) {
  const input from{x}, upper{dy};
  const output to{dx};
  for_each_pack(on, x.rows, x.columns,
                gelu_backward{stored_of(from), stored_of(upper), stored_of(to)}, from,
                upper, to);
}

} // namespace troupe::cuda
