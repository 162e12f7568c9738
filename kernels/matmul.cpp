#include "kernels/matmul.hpp"

#include "kernels/bf16_block.hpp"
#include "kernels/bf16_gemm.hpp"
#include "kernels/memory.hpp"
#include "kernels/sgemm.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace troupe {

namespace {

template <class Scalar>
std::int64_t read_rows(const stored_matrix<Scalar>& m) {
  return m.transposed ? m.columns : m.rows;
}

template <class Scalar>
std::int64_t read_columns(const stored_matrix<Scalar>& m) {
  return m.transposed ? m.rows : m.columns;
}

template <class Scalar>
const Scalar& element(const matrix<const Scalar>& m, std::int64_t r, std::int64_t c) {
  return m.transposed ? m.data[c * m.stride + r] : m.data[r * m.stride + c];
}

template <class Scalar>
void check_product(const stored_matrix<const Scalar>& a,
                   const stored_matrix<const Scalar>& b,
                   const stored_matrix<Scalar>& c) {
  if (read_rows(a) != c.rows || read_columns(b) != c.columns
      || read_columns(a) != read_rows(b) || c.transposed)
    throw std::logic_error(
      "matmul of (" + std::to_string(read_rows(a)) + ", "
      + std::to_string(read_columns(a)) + ") and (" + std::to_string(read_rows(b))
      + ", " + std::to_string(read_columns(b)) + ") into (" + std::to_string(c.rows)
      + ", " + std::to_string(c.columns) + ")");
}

/// What sgemm reads and writes.
template <class Scalar>
matrix<Scalar> of_floats(const stored_matrix<Scalar>& m) {
  if (m.is_bf16)
    throw std::logic_error("a product of fp32 is asked for with values of bf16");
  return m.plain();
}

/// The plain three loops.
template <class Scalar>
void multiply_plainly(matrix<const Scalar> a, matrix<const Scalar> b, Scalar alpha,
                      Scalar beta, matrix<Scalar> c) {
  const auto depth = a.transposed ? a.rows : a.columns;
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.columns; ++j) {
      Scalar sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += element(a, i, k) * element(b, k, j);
      auto& result = c.row(i)[j];
      result = alpha * sum + (beta == 0 ? Scalar{0} : beta * result);
    }
}

/// How many slices a product is cut into, and whether by columns: slices that are worth
/// handing out, some for each thread.
struct product_slices {
  int count;
  bool by_columns;
};

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

} // namespace

template <class Scalar>
void multiply(precision by, stored_matrix<const Scalar> a,
              stored_matrix<const Scalar> b, Scalar alpha, Scalar beta,
              stored_matrix<Scalar> c, const epilogue<Scalar>& end) {
  check_product<Scalar>(a, b, c);
  if constexpr (std::is_same_v<Scalar, float>) {
    if (by == precision::bf16)
      return bf16_gemm(a, b, alpha, beta, c, end);
    sgemm(of_floats(a), of_floats(b), alpha, beta, of_floats(c), end);
  } else {
    multiply_plainly<Scalar>(a.plain(), b.plain(), alpha, beta, c.plain());
    end.finish(c.plain(), 0, 0);
  }
}

namespace {

template <class Scalar>
void share_out(precision by, const stored_matrix<const Scalar>& a,
               const stored_matrix<const Scalar>& b, Scalar beta,
               const stored_matrix<Scalar>& c, stream& on,
               const epilogue<Scalar>& end) {
  const auto [count, by_columns] =
    slices_of(c.rows, c.columns, read_columns(a), on.threads());
  if (count == 1)
    return multiply<Scalar>(by, a, b, Scalar{1}, beta, c, end);
  const auto length = by_columns ? c.columns : c.rows;
  // Blocks of bf16 are not cut in two.
  const std::int64_t unit = by == precision::bf16 ? block_side : 1;
  const auto first_of = [&, count = count](int slice) {
    return slice == count ? length : length / unit * slice / count * unit;
  };
  on.cpu().run(count, [&, by_columns = by_columns](int slice, int) {
    const auto first = first_of(slice), size = first_of(slice + 1) - first;
    const auto rows_read = by_columns     ? a
                           : a.transposed ? a.column_range(first, size)
                                          : a.row_range(first, size);
    const auto columns_read = !by_columns    ? b
                              : b.transposed ? b.row_range(first, size)
                                             : b.column_range(first, size);
    const auto made =
      by_columns ? c.column_range(first, size) : c.row_range(first, size);
    multiply<Scalar>(by, rows_read, columns_read, Scalar{1}, beta, made,
                     by_columns ? end.from(0, first) : end.from(first, 0));
  });
}

} // namespace

template <class Scalar>
void matmul(stored_matrix<const Scalar> a, stored_matrix<const Scalar> b, Scalar beta,
            stored_matrix<Scalar> c, stream& on, const epilogue<Scalar>& end) {
  share_out<Scalar>(on.products(), a, b, beta, c, on, end);
}

template <class Scalar>
void exact_matmul(matrix<const Scalar> a, matrix<const Scalar> b, Scalar beta,
                  matrix<Scalar> c, stream& on) {
  share_out<Scalar>(precision::fp32, a, b, beta, c, on, {});
}

template <class Scalar>
std::int64_t right_side<Scalar>::room(std::int64_t depth, std::int64_t columns) {
  if constexpr (std::is_same_v<Scalar, float>)
    return padded(
      std::max(packed_size(depth, columns), bf16_packed_size(depth, columns)));
  else
    return 0;
}

template <class Scalar>
right_side<Scalar>::right_side(precision by, stored_matrix<const Scalar> b,
                               Scalar* space)
  : by_(by), b_(b), packed_(space) {
  if constexpr (std::is_same_v<Scalar, float>) {
    if (by == precision::bf16)
      bf16_pack_right(b, space);
    else
      pack_right(of_floats(b), space);
  }
}

template <class Scalar>
void right_side<Scalar>::multiply(stored_matrix<const Scalar> a, Scalar alpha,
                                  Scalar beta, stored_matrix<Scalar> c) const {
  if constexpr (std::is_same_v<Scalar, float>) {
    if (by_ == precision::bf16)
      bf16_gemm_packed(a, packed_, read_rows(b_), alpha, beta, c);
    else
      sgemm_packed(of_floats(a), packed_, read_rows(b_), alpha, beta, of_floats(c));
  } else
    troupe::multiply<Scalar>(by_, a,
                             b_.transposed
                               ? b_.row_range(0, c.columns).column_range(0, a.columns)
                               : b_.row_range(0, a.columns).column_range(0, c.columns),
                             alpha, beta, c);
}

template void matmul<float>(stored_matrix<const float>, stored_matrix<const float>,
                            float, stored_matrix<float>, stream&,
                            const epilogue<float>&);
template void matmul<double>(stored_matrix<const double>, stored_matrix<const double>,
                             double, stored_matrix<double>, stream&,
                             const epilogue<double>&);
template void exact_matmul<float>(matrix<const float>, matrix<const float>, float,
                                  matrix<float>, stream&);
template void exact_matmul<double>(matrix<const double>, matrix<const double>, double,
                                   matrix<double>, stream&);
template void multiply<float>(precision, stored_matrix<const float>,
                              stored_matrix<const float>, float, float,
                              stored_matrix<float>, const epilogue<float>&);
template void multiply<double>(precision, stored_matrix<const double>,
                               stored_matrix<const double>, double, double,
                               stored_matrix<double>, const epilogue<double>&);
template class right_side<float>;
template class right_side<double>;

} // namespace troupe
