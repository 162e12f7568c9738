#pragma once

#include "kernels/matrix.hpp"
#include "kernels/memory.hpp"
#include "kernels/sgemm.hpp"
#include "kernels/team.hpp"

#include <algorithm>
#include <type_traits>

namespace troupe {

namespace detail {

/// \throws std::logic_error if the sizes of a, b and c do not fit
template <class Scalar>
void check_product(matrix<const Scalar> a, matrix<const Scalar> b, matrix<Scalar> c);

/// The plain three loops.
template <class Scalar>
void multiply_plainly(matrix<const Scalar> a, matrix<const Scalar> b, Scalar alpha,
                      Scalar beta, matrix<Scalar> c);

/// How many slices a product is cut into, and whether by columns: slices that are worth
/// handing out, some for each thread.
struct product_slices {
  int count;
  bool by_columns;
};

product_slices slices_of(std::int64_t rows, std::int64_t columns, std::int64_t depth,
                         int threads);

} // namespace detail

/// For products after which nothing is done.
struct no_finish {
  template <class Scalar>
  void operator()(std::int64_t, std::int64_t, matrix<Scalar>) const {
    // nop
  }
};

/// c = alpha a b + beta c on this thread; a is (M, K), b is (K, N), c is (M, N), each
/// as read: transposed where the view says so. With beta 0, c may hold anything. c must
/// be stored as it is read. float: sgemm. Other scalars: the plain three loops.
/// finish(row, column, part) is called once for each part of c, while it is in the
/// cache; row and column are those of its first element.
template <class Scalar, class Finish = no_finish>
void multiply(matrix<const Scalar> a, matrix<const Scalar> b, Scalar alpha, Scalar beta,
              matrix<Scalar> c, const Finish& finish = {}) {
  detail::check_product<Scalar>(a, b, c);
  if constexpr (std::is_same_v<Scalar, float>) {
    part_call on_part;
    if constexpr (!std::is_same_v<Finish, no_finish>)
      on_part = {[](const void* context, std::int64_t row, std::int64_t column,
                    matrix<float> part) {
                   (*static_cast<const Finish*>(context))(row, column, part);
                 },
                 &finish};
    sgemm(a, b, alpha, beta, c, on_part);
  } else {
    detail::multiply_plainly<Scalar>(a, b, alpha, beta, c);
    finish(0, 0, c);
  }
}

/// The right side of many products on one thread: a (K, N) matrix, as read. float: a
/// copy in sgemm's order, made once, in `room(K, N)` values of space.
template <class Scalar>
class right_side {
public:
  static std::int64_t room(std::int64_t depth, std::int64_t columns) {
    if constexpr (std::is_same_v<Scalar, float>)
      return padded(packed_size(depth, columns));
    else
      return 0;
  }

  right_side(matrix<const Scalar> b, Scalar* space) : b_(b), packed_(space) {
    if constexpr (std::is_same_v<Scalar, float>)
      pack_right(b, space);
  }

  /// c = alpha a b + beta c, with b's first rows and columns: as many as a has columns
  /// and as c has.
  void multiply(matrix<const Scalar> a, Scalar alpha, Scalar beta,
                matrix<Scalar> c) const {
    const auto depth = b_.transposed ? b_.columns : b_.rows;
    if constexpr (std::is_same_v<Scalar, float>)
      sgemm_packed(a, packed_, depth, alpha, beta, c);
    else
      troupe::multiply<Scalar>(
        a,
        b_.transposed ? b_.row_range(0, c.columns).column_range(0, a.columns)
                      : b_.row_range(0, a.columns).column_range(0, c.columns),
        alpha, beta, c);
  }

private:
  matrix<const Scalar> b_;
  const Scalar* packed_;
};

/// c = a b + beta c by the team. The bits do not depend on its size.
template <class Scalar, class Finish = no_finish>
void matmul(matrix<const Scalar> a, matrix<const Scalar> b, Scalar beta,
            matrix<Scalar> c, team& threads, const Finish& finish = {}) {
  const auto [count, by_columns] = detail::slices_of(
    c.rows, c.columns, a.transposed ? a.rows : a.columns, threads.size());
  const auto length = by_columns ? c.columns : c.rows;
  threads.run(count, [&, count = count, by_columns = by_columns](int slice, int) {
    const auto first = length * slice / count;
    const auto size = length * (slice + 1) / count - first;
    const auto rows_read = by_columns     ? a
                           : a.transposed ? a.column_range(first, size)
                                          : a.row_range(first, size);
    const auto columns_read = !by_columns    ? b
                              : b.transposed ? b.row_range(first, size)
                                             : b.column_range(first, size);
    const auto made =
      by_columns ? c.column_range(first, size) : c.row_range(first, size);
    if constexpr (std::is_same_v<Finish, no_finish>)
      multiply<Scalar>(rows_read, columns_read, Scalar{1}, beta, made);
    else
      multiply<Scalar>(rows_read, columns_read, Scalar{1}, beta, made,
                       [&](std::int64_t row, std::int64_t column, matrix<Scalar> part) {
                         finish(by_columns ? row : first + row,
                                by_columns ? first + column : column, part);
                       });
  });
}

} // namespace troupe
