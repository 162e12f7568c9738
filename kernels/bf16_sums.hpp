// SPDX-License-Identifier: BSD-3-Clause
// The sums of a product of bf16: where they are made, and what becomes of them.
#pragma once

#include "kernels/epilogue.hpp"
#include "kernels/stored_matrix.hpp"

namespace troupe {

/// \throws std::logic_error unless alpha is 1 or beta 0, and beta is 0 if c is bf16
void check_factors(float alpha, float beta, const stored_matrix<float>& c);

/// c = by c
void scale(float by, matrix<float> c);

/// Columns of a matrix as read.
inline std::int64_t read_depth(const stored_matrix<const float>& a) {
  return a.transposed ? a.rows : a.columns;
}

/// The sums of a part of c: in its place, or in `room` if c is bf16.
class part_of_sums {
public:
  /// \param room as large as the part
  part_of_sums(const stored_matrix<float>& c, std::int64_t row, std::int64_t column,
               matrix<float> room);

  matrix<float> sums() const { return sums_; }

  /// Columns [first, first + count) have their sums.
  void end(std::int64_t first, std::int64_t count, float alpha,
           const epilogue<float>& last) const;

private:
  stored_matrix<float> to_;
  std::int64_t row_, column_;
  matrix<float> sums_;
};

} // namespace troupe
