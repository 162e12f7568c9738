#include "kernels/matmul.hpp"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace troupe {

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

template <class Scalar>
void check(const matrix<const Scalar>& a, const matrix<const Scalar>& b,
           const matrix<Scalar>& c) {
  if (read_rows(a) != c.rows || read_columns(b) != c.columns
      || read_columns(a) != read_rows(b) || c.transposed)
    throw std::logic_error(
      "matmul of (" + std::to_string(read_rows(a)) + ", "
      + std::to_string(read_columns(a)) + ") and (" + std::to_string(read_rows(b))
      + ", " + std::to_string(read_columns(b)) + ") into (" + std::to_string(c.rows)
      + ", " + std::to_string(c.columns) + ")");
}

// oneDNN runs on OpenMP. A rank's kernels share its team instead, so OpenMP gets one
// thread, on each thread that calls it.
void use_one_openmp_thread() {
  thread_local const bool done = (omp_set_num_threads(1), true);
  static_cast<void>(done);
}

} // namespace

template <class Scalar>
void multiply(matrix<const Scalar> a, matrix<const Scalar> b, Scalar alpha, Scalar beta,
              matrix<Scalar> c) {
  check(a, b, c);
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

template <>
void multiply<float>(matrix<const float> a, matrix<const float> b, float alpha,
                     float beta, matrix<float> c) {
  check(a, b, c);
  use_one_openmp_thread();
  const auto status = dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N',
                                 c.rows, c.columns, read_columns(a), alpha, a.data,
                                 a.stride, b.data, b.stride, beta, c.data, c.stride);
  if (status != dnnl_success)
    throw std::runtime_error(std::string{__FILE__} + ": dnnl_sgemm failed with status "
                             + std::to_string(status));
}

std::int64_t rows_a_slice(std::int64_t rows, std::int64_t operations_a_row) {
  constexpr std::int64_t slices = 4, least_rows = 32, least_operations = 1 << 20;
  return std::max({(rows + slices - 1) / slices, least_rows,
                   least_operations / std::max<std::int64_t>(operations_a_row, 1)});
}

template <class Scalar>
void matmul(matrix<const Scalar> a, matrix<const Scalar> b, Scalar beta,
            matrix<Scalar> c, team& threads) {
  const auto depth = read_columns(a);
  if (c.rows >= c.columns) {
    threads.run_ranges(c.rows, rows_a_slice(c.rows, 2 * depth * c.columns),
                       [&](std::int64_t first, std::int64_t last, int) {
                         const auto count = last - first;
                         multiply<Scalar>(a.transposed ? a.column_range(first, count)
                                                       : a.row_range(first, count),
                                          b, Scalar{1}, beta,
                                          c.row_range(first, count));
                       });
  } else {
    threads.run_ranges(c.columns, rows_a_slice(c.columns, 2 * depth * c.rows),
                       [&](std::int64_t first, std::int64_t last, int) {
                         const auto count = last - first;
                         multiply<Scalar>(a,
                                          b.transposed ? b.row_range(first, count)
                                                       : b.column_range(first, count),
                                          Scalar{1}, beta,
                                          c.column_range(first, count));
                       });
  }
}

template void multiply<double>(matrix<const double>, matrix<const double>, double,
                               double, matrix<double>);
template void matmul<float>(matrix<const float>, matrix<const float>, float,
                            matrix<float>, team&);
template void matmul<double>(matrix<const double>, matrix<const double>, double,
                             matrix<double>, team&);

} // namespace troupe
