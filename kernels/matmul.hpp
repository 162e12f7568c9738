#pragma once

#include "kernels/matrix.hpp"
#include "kernels/team.hpp"

namespace troupe {

/// c = alpha a b + beta c on this thread; a is (M, K), b is (K, N), c is (M, N), each
/// as read: transposed where the view says so. With beta 0, c may hold anything. c must
/// be stored as it is read. float: oneDNN's sgemm, on one thread. Other scalars: the
/// plain three loops.
template <class Scalar>
void multiply(matrix<const Scalar> a, matrix<const Scalar> b, Scalar alpha, Scalar beta,
              matrix<Scalar> c);

/// The same, cut into slices of c for the team.
template <class Scalar>
void matmul(matrix<const Scalar> a, matrix<const Scalar> b, Scalar beta,
            matrix<Scalar> c, team& threads);

/// Rows a slice of a product gets at least, so that a slice is worth handing out: at
/// most four slices, whatever the team.
std::int64_t rows_a_slice(std::int64_t rows, std::int64_t operations_a_row);

/// y = x w, then finish(first_row, rows of y) for each slice while it is warm; x is
/// (R, in), w is (in, out), y is (R, out).
template <class Scalar, class Finish>
void multiply_rows(matrix<const Scalar> x, matrix<const Scalar> w, matrix<Scalar> y,
                   team& threads, const Finish& finish) {
  const auto grain = rows_a_slice(x.rows, 2 * x.columns * y.columns);
  threads.run_ranges(x.rows, grain, [&](std::int64_t first, std::int64_t last, int) {
    const auto rows = y.row_range(first, last - first);
    multiply<Scalar>(x.row_range(first, last - first), w, Scalar{1}, Scalar{0}, rows);
    finish(first, rows);
  });
}

} // namespace troupe
