// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <type_traits>

namespace troupe {

/// A view of a matrix in the memory of another owner: row-major, rows `stride` values
/// apart. `transposed` makes a kernel read the transpose; no value moves.
template <class Scalar>
struct matrix {
  Scalar* data;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t stride;
  bool transposed = false;

  /// Columns [first, first + count) of the stored matrix.
  matrix column_range(std::int64_t first, std::int64_t count) const {
    return {data + first, rows, count, stride, transposed};
  }

  /// Rows [first, first + count) of the stored matrix.
  matrix row_range(std::int64_t first, std::int64_t count) const {
    return {data + first * stride, count, columns, stride, transposed};
  }

  /// The part of the stored matrix that begins at (row, column), as large as `size`.
  template <class Other>
  matrix part(std::int64_t row, std::int64_t column, const matrix<Other>& size) const {
    return row_range(row, size.rows).column_range(column, size.columns);
  }

  Scalar* row(std::int64_t r) const { return data + r * stride; }

  matrix t() const { return {data, rows, columns, stride, !transposed}; }

  operator matrix<const Scalar>() const requires(!std::is_const_v<Scalar>) {
    return {data, rows, columns, stride, transposed};
  }
};

/// A matrix without gaps between rows.
template <class Scalar>
matrix<Scalar> dense(Scalar* data, std::int64_t rows, std::int64_t columns) {
  return {data, rows, columns, columns};
}

} // namespace troupe
