// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/matrix.hpp"
#include "kernels/vector.hpp"

#include <cstdint>

// Layouts of one head's matrices, one row a token, that the tiles of products read.
// Both consist of panels of `panel` values side by side, the layout of sgemm.

namespace troupe {

inline constexpr std::int64_t panel = 2 * lanes;

constexpr std::int64_t round_up(std::int64_t unit, std::int64_t size) {
  return (size + unit - 1) / unit * unit;
}

/// Layout (T / panel, size, panel): neighbouring tokens are side by side. The caller
/// owns `data`.
struct token_panels {
  float* data;
  std::int64_t size;

  static std::int64_t packed_size(std::int64_t tokens, std::int64_t size) {
    return round_up(panel, tokens) * size;
  }

  float* address(std::int64_t token) const {
    return data + token / panel * panel * size + token % panel;
  }

  /// Packs rows of tokens first.. and fills the last panel with zeros.
  /// \pre a panel begins at `first`
  void pack(matrix<const float> rows, std::int64_t first = 0) const;
};

/// Layout (size / panel, T, panel): neighbouring values of a token are side by side.
/// The caller owns `data`.
struct value_panels {
  float* data;
  std::int64_t tokens; ///< T
  std::int64_t size;

  static std::int64_t packed_size(std::int64_t tokens, std::int64_t size) {
    return tokens * round_up(panel, size);
  }

  float* address(std::int64_t token, std::int64_t value) const {
    return data + value * tokens + token * panel;
  }

  /// Packs rows of tokens first.. and fills up with zeros after the last value.
  void pack(matrix<const float> rows, std::int64_t first = 0) const;

  /// Unpacks rows; the second function multiplies row r by factors[r].
  void unpack(std::int64_t first, matrix<float> rows) const;
  void unpack(std::int64_t first, const float* factors, matrix<float> rows) const;
};

/// Prefetches rows that are read or written soon. Rows are a page apart, so no
/// processor prefetches the rows by itself. Each tile prefetches a few rows during the
/// computation. At most 8 matrices.
class row_prefetcher {
public:
  void add(matrix<const float> rows);

  /// Prefetches the next row of each matrix.
  void prefetch();

private:
  matrix<const float> matrices_[8];
  int count_ = 0;
  std::int64_t next_ = 0;
};

} // namespace troupe
