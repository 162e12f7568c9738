// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/layer_norm.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

constexpr std::int64_t rows_a_slice = 16;

} // namespace

template <class Scalar>
void layer_norm<Scalar>::forward(stored_matrix<const Scalar> x, const Scalar* gain,
                                 const Scalar* bias, stored_matrix<Scalar> y,
                                 Scalar* mean, Scalar* rstd, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::layer_norm::forward(x, gain, bias, y, mean, rstd, gpu->handle());
  const auto width = x.columns;
  stream.cpu().run_ranges(
    x.rows, rows_a_slice, [&](std::int64_t first, std::int64_t last, int) {
      row_reader<Scalar> from{x};
      row_writer<Scalar> to{y};
      for (auto r = first; r < last; ++r) {
        const auto* in = from.row(r);
        auto* out = to.row(r);
        Scalar sum = 0;
        for (std::int64_t c = 0; c < width; ++c)
          sum += in[c];
        const Scalar m = sum / static_cast<Scalar>(width);
        Scalar squares = 0;
        for (std::int64_t c = 0; c < width; ++c)
          squares += (in[c] - m) * (in[c] - m);
        const Scalar s =
          1 / std::sqrt(squares / static_cast<Scalar>(width) + Scalar(1e-5));
        for (std::int64_t c = 0; c < width; ++c)
          out[c] = (in[c] - m) * s * gain[c] + bias[c];
        to.end(r);
        mean[r] = m;
        rstd[r] = s;
      }
    });
}

template <class Scalar>
void layer_norm<Scalar>::input_gradient(stored_matrix<const Scalar> x,
                                        const Scalar* gain, const Scalar* mean,
                                        const Scalar* rstd,
                                        stored_matrix<const Scalar> dy,
                                        stored_matrix<const Scalar> dresidual,
                                        stored_matrix<Scalar> dx, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::layer_norm::input_gradient(x, gain, mean, rstd, dy, dresidual, dx,
                                              gpu->handle());
  const auto width = x.columns;
  stream.cpu().run_ranges(
    x.rows, rows_a_slice, [&](std::int64_t first, std::int64_t last, int) {
      row_reader<Scalar> from{x}, from_above{dy}, from_residual{dresidual};
      row_writer<Scalar> to{dx};
      for (auto r = first; r < last; ++r) {
        const auto* in = from.row(r);
        const auto* upper = from_above.row(r);
        const Scalar m = mean[r], s = rstd[r];
        Scalar sum = 0, sum_x = 0; // of dy * gain, and of that times the normalised x
        for (std::int64_t c = 0; c < width; ++c) {
          const Scalar g = upper[c] * gain[c];
          sum += g;
          sum_x += g * (in[c] - m) * s;
        }
        sum /= static_cast<Scalar>(width);
        sum_x /= static_cast<Scalar>(width);
        auto* out = to.row(r);
        const auto* residual =
          dresidual.data != nullptr ? from_residual.row(r) : nullptr;
        for (std::int64_t c = 0; c < width; ++c) {
          const Scalar through =
            s * (upper[c] * gain[c] - sum - (in[c] - m) * s * sum_x);
          out[c] = residual != nullptr ? residual[c] + through : through;
        }
        to.end(r);
      }
    });
}

template <class Scalar>
void layer_norm<Scalar>::weight_gradient(stored_matrix<const Scalar> x,
                                         const Scalar* mean, const Scalar* rstd,
                                         stored_matrix<const Scalar> dy, Scalar beta,
                                         Scalar* dgain, Scalar* dbias, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu()) {
      const auto values = cuda::column_sums::space(x.rows, x.columns, 2);
      return cuda::layer_norm::weight_gradient(
        x, mean, rstd, dy, beta, dgain, dbias,
        static_cast<float*>(gpu->space(cuda::workspace::rows, 4 * values)),
        gpu->handle());
    }
  constexpr std::int64_t columns_a_slice = 256; // a slice adds whole columns, in order
  stream.cpu().run_ranges(
    x.columns, columns_a_slice, [&](std::int64_t first, std::int64_t last, int) {
      if (beta == 0) {
        std::fill(dgain + first, dgain + last, Scalar{0});
        std::fill(dbias + first, dbias + last, Scalar{0});
      }
      const auto count = last - first;
      auto *const gain = dgain + first, *const bias = dbias + first;
      row_reader<Scalar> from{x.column_range(first, count)},
        from_above{dy.column_range(first, count)};
      for (std::int64_t r = 0; r < x.rows; ++r) {
        const auto* in = from.row(r);
        const auto* upper = from_above.row(r);
        const Scalar m = mean[r], s = rstd[r];
        for (std::int64_t c = 0; c < count; ++c) {
          gain[c] += upper[c] * (in[c] - m) * s;
          bias[c] += upper[c];
        }
      }
    });
}

template struct layer_norm<float>;
template struct layer_norm<double>;

} // namespace troupe
