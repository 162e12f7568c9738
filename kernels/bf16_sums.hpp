// SPDX-License-Identifier: BSD-3-Clause
// The fp32 sums of a product of bf16: the memory of the sums, and the last step from
// sums to values of c.
#pragma once

#include "kernels/epilogue.hpp"
#include "kernels/stored_matrix.hpp"

namespace troupe {

/// Checks the factors of a product into c.
/// \throws std::logic_error unless alpha is 1 or beta 0, and beta is 0 if c is bf16
void check_factors(float alpha, float beta, const stored_matrix<float>& c);

/// c = factor c
void scale(float factor, matrix<float> c);

/// Number of columns of a product's left side, as read: the depth of the product.
inline std::int64_t read_depth(const stored_matrix<const float>& a) {
  return a.transposed ? a.rows : a.columns;
}

/// The sums of a part of c, on one thread: in the memory of c, or in the caller's
/// `buffer` if c is bf16. The buffer and the memory of c must outlive this object.
class part_of_sums {
public:
  /// \param row,column the first row and column of the part in c
  /// \param buffer has the rows and columns of the part, also if c is fp32
  part_of_sums(const stored_matrix<float>& c, std::int64_t row, std::int64_t column,
               matrix<float> buffer);

  matrix<float> sums() const { return sums_; }

  /// Finishes columns [first, first + count) of the part, whose sums are complete:
  /// scales by alpha, applies the epilogue `last`, and rounds if c is bf16.
  void end(std::int64_t first, std::int64_t count, float alpha,
           const epilogue<float>& last) const;

private:
  stored_matrix<float> to_;
  std::int64_t row_, column_;
  matrix<float> sums_;
};

} // namespace troupe
