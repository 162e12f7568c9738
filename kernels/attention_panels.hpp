// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/matrix.hpp"
#include "kernels/vector.hpp"

#include <cstdint>

// Rows of one head's matrices, one a token, as the tiles of its products read them:
// panels of so many values that stand side by side, as sgemm packs them.

namespace troupe {

inline constexpr std::int64_t panel = 2 * lanes;

constexpr std::int64_t up_to(std::int64_t unit, std::int64_t size) {
  return (size + unit - 1) / unit * unit;
}

/// (T / panel, size, panel): neighbouring tokens stand side by side.
struct token_panels {
  float* data;
  std::int64_t size;

  static std::int64_t room(std::int64_t tokens, std::int64_t size) {
    return up_to(panel, tokens) * size;
  }

  float* at(std::int64_t token) const {
    return data + token / panel * panel * size + token % panel;
  }

  /// Packs rows of tokens first.., zeros behind the last. \pre a panel begins there
  void pack(matrix<const float> rows, std::int64_t first = 0) const;
};

/// (size / panel, T, panel): neighbouring values of a token stand side by side.
struct value_panels {
  float* data;
  std::int64_t tokens; ///< T
  std::int64_t size;

  static std::int64_t room(std::int64_t tokens, std::int64_t size) {
    return tokens * up_to(panel, size);
  }

  float* at(std::int64_t token, std::int64_t value) const {
    return data + value * tokens + token * panel;
  }

  /// Packs rows of tokens first.., zeros behind the last value.
  void pack(matrix<const float> rows, std::int64_t first = 0) const;

  /// The reverse, times a factor.
  void unpack(std::int64_t first, matrix<float> rows) const;
  void unpack(std::int64_t first, const float* factors, matrix<float> rows) const;
};

/// Rows that are read or written soon. They are as far apart as a page, so no processor
/// guesses them: tiles ask for a few each, while they compute.
class coming_rows {
public:
  void add(matrix<const float> rows);

  /// Asks for the next row of each matrix.
  void ask();

private:
  matrix<const float> of_[8];
  int count_ = 0;
  std::int64_t next_ = 0;
};

} // namespace troupe
