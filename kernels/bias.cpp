// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/bias.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"

#include <algorithm>

namespace troupe {

template <class Scalar>
void bias<Scalar>::add_with_residual(matrix<const Scalar> product, const Scalar* bias,
                                     stored_matrix<const Scalar> x,
                                     stored_matrix<Scalar> y, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::bias::add_with_residual(product, bias, x, y, gpu->handle());
  constexpr std::int64_t rows_a_slice = 16;
  const auto add_rows = [&](std::int64_t first, std::int64_t last, int) {
    row_reader<Scalar> residual{x};
    row_writer<Scalar> to{y};
    for (auto r = first; r < last; ++r) {
      const auto *sums = product.row(r), *from = residual.row(r);
      auto* row = to.row(r);
      for (std::int64_t c = 0; c < y.columns; ++c)
        row[c] = sums[c] + bias[c] + from[c];
      to.end(r);
    }
  };
  stream.cpu().run_ranges(y.rows, rows_a_slice, add_rows);
}

template <class Scalar>
void bias<Scalar>::gradient(stored_matrix<const Scalar> dy, Scalar beta, Scalar* dbias,
                            stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu()) {
      const auto values = cuda::column_sums::space(dy.rows, dy.columns, 1);
      return cuda::bias::gradient(
        dy, beta, dbias,
        static_cast<float*>(gpu->space(cuda::workspace::rows, 4 * values)),
        gpu->handle());
    }
  constexpr std::int64_t columns_a_slice = 256; // a slice adds whole columns, in order
  const auto sum_columns = [&](std::int64_t first, std::int64_t last, int) {
    if (beta == 0)
      std::fill(dbias + first, dbias + last, Scalar{0});
    row_reader<Scalar> from{dy.column_range(first, last - first)};
    for (std::int64_t r = 0; r < dy.rows; ++r) {
      const auto* row = from.row(r);
      for (auto c = first; c < last; ++c)
        dbias[c] += row[c - first];
    }
  };
  stream.cpu().run_ranges(dy.columns, columns_a_slice, sum_columns);
}

template struct bias<float>;
template struct bias<double>;

} // namespace troupe
