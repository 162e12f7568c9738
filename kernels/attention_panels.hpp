// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/matrix.hpp"
#include "kernels/vector.hpp"

#include <cstdint>

// Two layouts for a matrix of one head, which has one row per token. Both consist of
// panels of `panel` adjacent values, the layout of sgemm's tiles. A panel of
// token_panels has values of neighbouring tokens. A panel of value_panels has
// neighbouring values of one token.

namespace troupe {

inline constexpr std::int64_t panel = 2 * lanes;

constexpr std::int64_t round_up(std::int64_t unit, std::int64_t size) {
  return (size + unit - 1) / unit * unit;
}

/// Layout (T / panel, size, panel), with T rounded up to whole panels: the values of
/// neighbouring tokens at one index are adjacent. The caller owns `data`.
struct token_panels {
  float* data;
  std::int64_t size; ///< Number of values of a token.

  static std::int64_t packed_size(std::int64_t tokens, std::int64_t size) {
    return round_up(panel, tokens) * size;
  }

  /// Address of the first value of a token.
  float* address(std::int64_t token) const {
    return data + token / panel * panel * size + token % panel;
  }

  /// Packs `rows`, the tokens from `first` on. The rest of the last panel becomes 0.
  /// \pre `first` is a multiple of `panel`
  void pack(matrix<const float> rows, std::int64_t first = 0) const;
};

/// Layout (size / panel, T, panel), with `size` rounded up to whole panels:
/// neighbouring values of a token are adjacent. The caller owns `data`.
struct value_panels {
  float* data;
  std::int64_t tokens; ///< T
  std::int64_t size;   ///< Number of values of a token.

  static std::int64_t packed_size(std::int64_t tokens, std::int64_t size) {
    return tokens * round_up(panel, size);
  }

  /// Address of a token's panel: `panel` values that begin with the token's value at
  /// index `value`.
  /// \pre `value` is a multiple of `panel`
  float* address(std::int64_t token, std::int64_t value) const {
    return data + value * tokens + token * panel;
  }

  /// Packs `rows`, the tokens from `first` on. The last panel is 0 after the last value
  /// of a token.
  void pack(matrix<const float> rows, std::int64_t first = 0) const;

  /// Copies the tokens from `first` on into `rows`. With `factors`, row r is multiplied
  /// by factors[r].
  void unpack(std::int64_t first, matrix<float> rows) const;
  void unpack(std::int64_t first, const float* factors, matrix<float> rows) const;
};

/// Prefetches rows, of at most 8 matrices, that are read or written soon. Rows are
/// about a page apart, so no processor prefetches the rows by itself. The loops over
/// tiles call prefetch() before each tile.
class row_prefetcher {
public:
  /// Adds a matrix.
  /// \throws std::logic_error at the ninth matrix
  void add(matrix<const float> rows);

  /// Prefetches the next row of each matrix that has further rows.
  void prefetch();

private:
  matrix<const float> matrices_[8];
  int count_ = 0;
  std::int64_t next_ = 0;
};

} // namespace troupe
