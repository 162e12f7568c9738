// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/attention_panels.hpp"

#include "kernels/sgemm.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace troupe {

void token_panels::pack(matrix<const float> rows, std::int64_t first) const {
  pack_right(rows.t(), at(first));
}

void value_panels::pack(matrix<const float> rows, std::int64_t first) const {
  for (std::int64_t c = 0; c < rows.columns; c += panel) {
    const auto width = std::min(panel, rows.columns - c);
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      auto* const to = at(first + r, c);
      if (width == panel)
        std::memcpy(to, rows.row(r) + c, panel * sizeof(float));
      else
        std::fill(std::copy_n(rows.row(r) + c, width, to), to + panel, 0.0F);
    }
  }
}

void value_panels::unpack(std::int64_t first, matrix<float> rows) const {
  for (std::int64_t c = 0; c < rows.columns; c += panel) {
    const auto width = std::min(panel, rows.columns - c);
    for (std::int64_t r = 0; r < rows.rows; ++r)
      if (width == panel)
        std::memcpy(rows.row(r) + c, at(first + r, c), panel * sizeof(float));
      else
        std::copy_n(at(first + r, c), width, rows.row(r) + c);
  }
}

void value_panels::unpack(std::int64_t first, const float* factors,
                          matrix<float> rows) const {
  for (std::int64_t r = 0; r < rows.rows; ++r)
    for (std::int64_t c = 0; c < rows.columns; c += panel) {
      const auto width = std::min(panel, rows.columns - c);
      const auto* const from = at(first + r, c);
      auto* const to = rows.row(r) + c;
      for (std::int64_t i = 0; i < width; ++i)
        to[i] = factors[r] * from[i];
    }
}

void coming_rows::add(matrix<const float> rows) {
  if (count_ == static_cast<int>(std::size(of_)))
    throw std::logic_error("too many matrices of coming rows");
  of_[count_++] = rows;
}

void coming_rows::ask() {
  constexpr std::int64_t line = 16; // values
  for (int i = 0; i < count_; ++i)
    if (next_ < of_[i].rows) {
      const auto* const row = of_[i].row(next_);
      for (std::int64_t c = 0; c < of_[i].columns; c += line)
        __builtin_prefetch(row + c);
    }
  ++next_;
}

} // namespace troupe
