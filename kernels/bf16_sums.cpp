// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/bf16_sums.hpp"

#include <stdexcept>

namespace troupe {

void check_factors(float alpha, float beta, const stored_matrix<float>& c) {
  if (alpha != 1 && beta != 0)
    throw std::logic_error("a product of bf16 is scaled, or added to: not both");
  if (c.is_bf16 && beta != 0)
    throw std::logic_error("sums of bf16 have nothing to be added to");
}

void scale(float factor, matrix<float> c) {
  if (factor == 1)
    return;
  for (std::int64_t r = 0; r < c.rows; ++r)
    for (std::int64_t j = 0; j < c.columns; ++j)
      c.row(r)[j] *= factor;
}

part_of_sums::part_of_sums(const stored_matrix<float>& c, std::int64_t row,
                           std::int64_t column, matrix<float> buffer)
  : to_(c.row_range(row, buffer.rows).column_range(column, buffer.columns)),
    row_(row),
    column_(column),
    sums_(c.is_bf16 ? buffer : to_.plain()) {
  // nop
}

void part_of_sums::end(std::int64_t first, std::int64_t count, float alpha,
                       const epilogue<float>& last) const {
  const auto part = sums_.column_range(first, count);
  scale(alpha, part);
  last.finish(part, row_, column_ + first);
  if (to_.is_bf16)
    round_into(to_.column_range(first, count), part);
}

} // namespace troupe
