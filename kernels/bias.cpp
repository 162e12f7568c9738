#include "kernels/bias.hpp"

#include <algorithm>

namespace troupe {

template <class Scalar>
void bias<Scalar>::add_with_residual(matrix<const Scalar> product, const Scalar* bias,
                                     matrix<const Scalar> x, matrix<Scalar> y,
                                     stream& on) {
  constexpr std::int64_t rows_a_slice = 16;
  const auto add_rows = [&](std::int64_t first, std::int64_t last, int) {
    for (auto r = first; r < last; ++r) {
      const auto *sums = product.row(r), *from = x.row(r);
      auto* row = y.row(r);
      for (std::int64_t c = 0; c < y.columns; ++c)
        row[c] = sums[c] + bias[c] + from[c];
    }
  };
  on.cpu().run_ranges(y.rows, rows_a_slice, add_rows);
}

template <class Scalar>
void bias<Scalar>::gradient(matrix<const Scalar> dy, Scalar beta, Scalar* dbias,
                            stream& on) {
  constexpr std::int64_t columns_a_slice = 256; // a slice adds whole columns, in order
  const auto sum_columns = [&](std::int64_t first, std::int64_t last, int) {
    if (beta == 0)
      std::fill(dbias + first, dbias + last, Scalar{0});
    for (std::int64_t r = 0; r < dy.rows; ++r) {
      const auto* row = dy.row(r);
      for (auto c = first; c < last; ++c)
        dbias[c] += row[c];
    }
  };
  on.cpu().run_ranges(dy.columns, columns_a_slice, sum_columns);
}

template struct bias<float>;
template struct bias<double>;

} // namespace troupe
