#include "kernels/matmul.hpp"

#include <stdexcept>
#include <string>

namespace troupe::detail {

namespace {

template <class Scalar>
std::int64_t read_rows(const matrix<Scalar>& m) {
  return m.transposed ? m.columns : m.rows;
}

template <class Scalar>
std::int64_t read_columns(const matrix<Scalar>& m) {
  return m.transposed ? m.rows : m.columns;
}

template <class Scalar>
const Scalar& element(const matrix<const Scalar>& m, std::int64_t r, std::int64_t c) {
  return m.transposed ? m.data[c * m.stride + r] : m.data[r * m.stride + c];
}

} // namespace

template <class Scalar>
void check_product(matrix<const Scalar> a, matrix<const Scalar> b, matrix<Scalar> c) {
  if (read_rows(a) != c.rows || read_columns(b) != c.columns
      || read_columns(a) != read_rows(b) || c.transposed)
    throw std::logic_error(
      "matmul of (" + std::to_string(read_rows(a)) + ", "
      + std::to_string(read_columns(a)) + ") and (" + std::to_string(read_rows(b))
      + ", " + std::to_string(read_columns(b)) + ") into (" + std::to_string(c.rows)
      + ", " + std::to_string(c.columns) + ")");
}

template <class Scalar>
void multiply_plainly(matrix<const Scalar> a, matrix<const Scalar> b, Scalar alpha,
                      Scalar beta, matrix<Scalar> c) {
  const auto depth = read_columns(a);
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.columns; ++j) {
      Scalar sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += element(a, i, k) * element(b, k, j);
      auto& result = c.row(i)[j];
      result = alpha * sum + (beta == 0 ? Scalar{0} : beta * result);
    }
}

product_slices slices_of(std::int64_t rows, std::int64_t columns, std::int64_t depth,
                         int threads) {
  constexpr std::int64_t least_columns = 128, least_rows = 32,
                         least_operations = 1 << 20;
  if (threads == 1)
    return {1, false};
  // Slices of columns share no part of b that has to be packed; rows share all of it.
  const auto slices = std::int64_t{2} * threads;
  const bool by_columns = columns >= threads * least_columns;
  const auto most = std::min(by_columns ? columns / least_columns : rows / least_rows,
                             2 * rows * columns * depth / least_operations);
  return {static_cast<int>(std::clamp<std::int64_t>(most, 1, slices)), by_columns};
}

template void check_product<float>(matrix<const float>, matrix<const float>,
                                   matrix<float>);
template void check_product<double>(matrix<const double>, matrix<const double>,
                                    matrix<double>);
template void multiply_plainly<double>(matrix<const double>, matrix<const double>,
                                       double, double, matrix<double>);

} // namespace troupe::detail
