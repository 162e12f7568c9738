// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/matmul.hpp"

#include "kernels/bf16_choice.hpp"
#include "kernels/bf16_gemm.hpp"
#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/matmul.hpp"
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

/// The path of bf16 products.
/// \throws tl::bad_expected_access if TROUPE_BF16 is set and names no path of this
/// processor
bf16_path path_of_products() {
  return chosen_bf16_path().value();
}

/// The fp32 view of an operand or result of sgemm.
/// \throws std::logic_error if the matrix stores bf16
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

/// The number of slices of a product, and whether slices are columns or rows. Each
/// slice has enough work for a thread, and each thread gets some.
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
  // Slices of columns share no part of b that has to be packed; slices of rows share
  // all of b.
  const auto slices = std::int64_t{2} * threads;
  const bool by_columns = columns >= threads * least_columns;
  const auto most = std::min(by_columns ? columns / least_columns : rows / least_rows,
                             2 * rows * columns * depth / least_operations);
  return {static_cast<int>(std::clamp<std::int64_t>(most, 1, slices)), by_columns};
}

} // namespace

template <class Scalar>
void multiply(precision products, stored_matrix<const Scalar> a,
              stored_matrix<const Scalar> b, Scalar alpha, Scalar beta,
              stored_matrix<Scalar> c, const epilogue<Scalar>& end) {
  check_product<Scalar>(a, b, c);
  if constexpr (std::is_same_v<Scalar, float>) {
    if (products == precision::bf16)
      return bf16_gemm(path_of_products(), a, b, alpha, beta, c, end);
    sgemm(of_floats(a), of_floats(b), alpha, beta, of_floats(c), end);
  } else {
    multiply_plainly<Scalar>(a.plain(), b.plain(), alpha, beta, c.plain());
    end.finish(c.plain(), 0, 0);
  }
}

namespace {

/// Some rows of c, or some columns.
struct product_slice {
  std::int64_t row, rows, column, columns;

  template <class Scalar>
  stored_matrix<Scalar> part_of(const stored_matrix<Scalar>& c) const {
    return c.row_range(row, rows).column_range(column, columns);
  }

  template <class Scalar>
  stored_matrix<Scalar> rows_of(const stored_matrix<Scalar>& a) const {
    return a.transposed ? a.column_range(row, rows) : a.row_range(row, rows);
  }

  template <class Scalar>
  stored_matrix<Scalar> columns_of(const stored_matrix<Scalar>& b) const {
    return b.transposed ? b.row_range(column, columns)
                        : b.column_range(column, columns);
  }
};

/// Calls make(slice) for slices that together are c, and that begin at multiples of
/// `unit`.
template <class Make>
void share_out(std::int64_t rows, std::int64_t columns, std::int64_t depth,
               std::int64_t unit, stream& stream, const Make& make) {
  const auto [count, by_columns] = slices_of(rows, columns, depth, stream.threads());
  if (count == 1)
    return make(product_slice{0, rows, 0, columns});
  const auto length = by_columns ? columns : rows;
  const auto first_of = [=, count = count](int slice) {
    return slice == count ? length : length / unit * slice / count * unit;
  };
  stream.cpu().run(count, [&, by_columns = by_columns](int slice, int) {
    const auto first = first_of(slice), size = first_of(slice + 1) - first;
    make(by_columns ? product_slice{0, rows, first, size}
                    : product_slice{first, size, 0, columns});
  });
}

template <class Scalar>
void product(precision products, const stored_matrix<const Scalar>& a,
             const stored_matrix<const Scalar>& b, Scalar beta,
             const stored_matrix<Scalar>& c, stream& stream,
             const epilogue<Scalar>& end) {
  // Blocks of bf16 stay whole.
  share_out(c.rows, c.columns, read_columns(a),
            products == precision::bf16 ? block_side : 1, stream,
            [&](const product_slice& s) {
              multiply<Scalar>(products, s.rows_of(a), s.columns_of(b), Scalar{1}, beta,
                               s.part_of(c), end.from(s.row, s.column));
            });
}

/// Packs b on all threads of a team, some columns each, and records the packed version.
void pack_together(const kept_right_side<float>& b, stream& stream) {
  const auto columns = read_columns(b.b), blocks = columns / block_side;
  const int count =
    static_cast<int>(std::clamp<std::int64_t>(blocks, 1, stream.threads()));
  stream.cpu().run(count, [&](int slice, int) {
    const auto first = blocks * slice / count * block_side,
               end = slice + 1 == count ? columns
                                        : blocks * (slice + 1) / count * block_side;
    bf16_pack_right(path_of_products(), b.b, first, end - first, b.packed);
  });
  *b.holds = b.version;
}

} // namespace

template <class Scalar>
void matmul(stored_matrix<const Scalar> a, stored_matrix<const Scalar> b, Scalar beta,
            stored_matrix<Scalar> c, stream& stream, const epilogue<Scalar>& end) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu()) {
      check_product<Scalar>(a, b, c);
      return cuda::matmul(stream.products(), a, {b}, beta, c, *gpu, end);
    }
  product<Scalar>(stream.products(), a, b, beta, c, stream, end);
}

template <class Scalar>
void matmul(stored_matrix<const Scalar> a, const kept_right_side<Scalar>& b,
            Scalar beta, stored_matrix<Scalar> c, stream& stream,
            const epilogue<Scalar>& end) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu()) {
      check_product<Scalar>(a, b.b, c);
      return cuda::matmul(stream.products(), a, b, beta, c, *gpu, end);
    }
  if constexpr (std::is_same_v<Scalar, float>)
    if (b.packed != nullptr) {
      check_product<Scalar>(a, b.b, c);
      if (*b.holds != b.version)
        pack_together(b, stream);
      return share_out(c.rows, c.columns, read_columns(a), block_side, stream,
                       [&](const product_slice& s) {
                         bf16_gemm_packed(path_of_products(), s.rows_of(a), b.packed,
                                          read_rows(b.b), s.column, 1, beta,
                                          s.part_of(c), end.from(s.row, s.column));
                       });
    }
  matmul<Scalar>(a, b.b, beta, c, stream, end);
}

template <class Scalar>
void exact_matmul(matrix<const Scalar> a, matrix<const Scalar> b, Scalar beta,
                  matrix<Scalar> c, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::matmul(precision::fp32, a, {b}, beta, c, *gpu, {}, true);
  product<Scalar>(precision::fp32, a, b, beta, c, stream, {});
}

std::int64_t kept_size(std::int64_t depth, std::int64_t columns) {
  return padded(bf16_packed_size(depth, columns));
}

template <class Scalar>
std::int64_t right_side<Scalar>::values(std::int64_t depth, std::int64_t columns) {
  if constexpr (std::is_same_v<Scalar, float>)
    return padded(
      std::max(packed_size(depth, columns), bf16_packed_size(depth, columns)));
  else
    return 0;
}

template <class Scalar>
right_side<Scalar>::right_side(precision products, stored_matrix<const Scalar> b,
                               Scalar* space)
  : products_(products), b_(b), packed_(space) {
  if constexpr (std::is_same_v<Scalar, float>) {
    if (products == precision::bf16)
      bf16_pack_right(path_of_products(), b, 0, read_columns(b), space);
    else
      pack_right(of_floats(b), space);
  }
}

template <class Scalar>
void right_side<Scalar>::multiply(stored_matrix<const Scalar> a, Scalar alpha,
                                  Scalar beta, stored_matrix<Scalar> c) const {
  if constexpr (std::is_same_v<Scalar, float>) {
    if (products_ == precision::bf16)
      bf16_gemm_packed(path_of_products(), a, packed_, read_rows(b_), 0, alpha, beta, c,
                       {});
    else
      sgemm_packed(of_floats(a), packed_, read_rows(b_), alpha, beta, of_floats(c));
  } else
    troupe::multiply<Scalar>(products_, a,
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
template void matmul<float>(stored_matrix<const float>, const kept_right_side<float>&,
                            float, stored_matrix<float>, stream&,
                            const epilogue<float>&);
template void matmul<double>(stored_matrix<const double>,
                             const kept_right_side<double>&, double,
                             stored_matrix<double>, stream&, const epilogue<double>&);
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
