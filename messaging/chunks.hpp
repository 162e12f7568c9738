// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace troupe {

/// Neighbouring chunks of an array. Behind the last one comes the first.
struct chunk_range {
  int first = 0;
  int count = 0;

  bool operator==(const chunk_range&) const = default;
};

/// Values [begin, end) of an array.
struct value_range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
};

/// Where an array is cut: what a collective sends and receives are ranges of chunks.
class chunks {
public:
  /// Chunk c of `count` is [values * c / count, values * (c + 1) / count).
  static chunks even(std::int64_t values, int count);

  /// Chunks one behind another, in whatever sizes: the slices of optimizer shards, the
  /// tokens for each expert.
  static chunks of_sizes(const std::vector<std::int64_t>& sizes);

  /// At the caller's count + 1 boundaries.
  /// \throws std::logic_error unless they begin with 0 and do not descend
  explicit chunks(std::vector<std::int64_t> bounds);

  int count() const { return count_; }
  std::int64_t values() const { return values_; }

  /// Where chunk c begins; chunk `count` begins where the array ends.
  std::int64_t begin(int c) const;

  std::int64_t size(chunk_range range) const;

  /// Where a range lies. The second part is empty unless the range goes on behind the
  /// last chunk.
  std::array<value_range, 2> places(chunk_range range) const;

private:
  chunks(std::int64_t values, int count) : values_(values), count_(count) {
    // nop
  }

  std::int64_t values_;
  int count_;
  std::vector<std::int64_t> bounds_; // empty: even, so that 1,024 ranks keep nothing
};

} // namespace troupe
