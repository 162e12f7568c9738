// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/attention_panels.hpp"

#include "kernels/sgemm.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace troupe {

void token_panels::pack(matrix<const float> rows, std::int64_t first) const {
  pack_right(rows.t(), address(first));
}

void value_panels::pack(matrix<const float> rows, std::int64_t first) const {
  for (std::int64_t c = 0; c < rows.columns; c += panel) {
    const auto width = std::min(panel, rows.columns - c);
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      auto* const to = address(first + r, c);
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
        std::memcpy(rows.row(r) + c, address(first + r, c), panel * sizeof(float));
      else
        std::copy_n(address(first + r, c), width, rows.row(r) + c);
  }
}

void value_panels::unpack(std::int64_t first, const float* factors,
                          matrix<float> rows) const {
  for (std::int64_t r = 0; r < rows.rows; ++r)
    for (std::int64_t c = 0; c < rows.columns; c += panel) {
      const auto width = std::min(panel, rows.columns - c);
      const auto* const from = address(first + r, c);
      auto* const to = rows.row(r) + c;
      for (std::int64_t i = 0; i < width; ++i)
        to[i] = factors[r] * from[i];
    }
}

void row_prefetcher::add(matrix<const float> rows) {
  if (count_ == static_cast<int>(std::size(matrices_)))
    throw std::logic_error("too many matrices of coming rows");
  matrices_[count_++] = rows;
}

void row_prefetcher::prefetch() {
  constexpr std::int64_t line = 16; // values
  for (int i = 0; i < count_; ++i)
    if (next_ < matrices_[i].rows) {
      const auto* const row = matrices_[i].row(next_);
      for (std::int64_t c = 0; c < matrices_[i].columns; c += line)
        __builtin_prefetch(row + c);
    }
  ++next_;
}

} // namespace troupe
