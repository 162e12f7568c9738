#include "kernels/gelu.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/vector_math.hpp"

namespace troupe {

namespace {

constexpr std::int64_t rows_a_slice = 16;

} // namespace

template <class Scalar>
void gelu<Scalar>::forward(matrix<const Scalar> x, matrix<Scalar> y, stream& on) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = on.gpu())
      return cuda::gelu::forward(x, y, gpu->on());
  const auto rows = [&](std::int64_t first, std::int64_t last, int) {
    for (auto r = first; r < last; ++r) {
      const auto* in = x.row(r);
      auto* out = y.row(r);
      for (std::int64_t c = 0; c < x.columns; ++c)
        out[c] = gelu_and_slope(in[c]).value;
    }
  };
  on.cpu().run_ranges(x.rows, rows_a_slice, rows);
}

template <class Scalar>
void gelu<Scalar>::backward(matrix<const Scalar> x, matrix<const Scalar> dy,
                            matrix<Scalar> dx, stream& on) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = on.gpu())
      return cuda::gelu::backward(x, dy, dx, gpu->on());
  const auto rows = [&](std::int64_t first, std::int64_t last, int) {
    for (auto r = first; r < last; ++r) {
      const auto *in = x.row(r), *upper = dy.row(r);
      auto* out = dx.row(r);
      for (std::int64_t c = 0; c < x.columns; ++c)
        out[c] = upper[c] * gelu_and_slope(in[c]).slope;
    }
  };
  on.cpu().run_ranges(x.rows, rows_a_slice, rows);
}

template struct gelu<float>;
template struct gelu<double>;

} // namespace troupe
