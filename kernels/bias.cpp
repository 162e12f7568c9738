#include "kernels/bias.hpp"

#include <algorithm>

namespace troupe {

template <class Scalar>
void bias<Scalar>::add(matrix<Scalar> y, const Scalar* bias) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    auto* row = y.row(r);
    for (std::int64_t c = 0; c < y.columns; ++c)
      row[c] += bias[c];
  }
}

template <class Scalar>
void bias<Scalar>::add_with_residual(matrix<Scalar> y, const Scalar* bias,
                                     matrix<const Scalar> x) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    const auto* from = x.row(r);
    auto* row = y.row(r);
    for (std::int64_t c = 0; c < y.columns; ++c)
      row[c] += bias[c] + from[c];
  }
}

template <class Scalar>
void bias<Scalar>::gradient(matrix<const Scalar> dy, Scalar beta, Scalar* dbias,
                            team& threads) {
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
  threads.run_ranges(dy.columns, columns_a_slice, sum_columns);
}

template struct bias<float>;
template struct bias<double>;

} // namespace troupe
