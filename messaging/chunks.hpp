// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace troupe {

/// A range of neighbouring chunks of an array. Ranges wrap around: the first chunk
/// follows the last one.
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

/// The boundaries that cut an array into chunks, in values. A collective sends and
/// receives ranges of chunks.
class chunks {
public:
  /// Cuts an array evenly. Chunk c of `count` is [values * c / count, values * (c + 1)
  /// / count).
  /// \pre `count` is at least 1
  static chunks even(std::int64_t values, int count);

  /// Cuts an array into chunks of these sizes in values, one after another. Examples
  /// are the slices of optimizer shards, and the tokens for each expert.
  /// \throws std::logic_error if there is no size, or a negative size
  static chunks of_sizes(const std::vector<std::int64_t>& sizes);

  /// Cuts an array at these boundaries, in values: one boundary more than chunks.
  /// \throws std::logic_error unless there are at least two boundaries, the first is 0,
  /// and none is below the one before
  explicit chunks(std::vector<std::int64_t> bounds);

  int count() const { return count_; }
  std::int64_t values() const { return values_; }

  /// Returns the index of the first value of chunk c. Chunk `count` begins at the end
  /// of the array.
  std::int64_t begin(int c) const;

  std::int64_t size(chunk_range range) const;

  /// Returns the values of a range of chunks. The second value range is empty unless
  /// the chunks wrap around the end of the array.
  std::array<value_range, 2> ranges(chunk_range range) const;

private:
  chunks(std::int64_t values, int count) : values_(values), count_(count) {
    // nop
  }

  std::int64_t values_;
  int count_;
  // empty if evenly cut, which saves memory with many ranks
  std::vector<std::int64_t> bounds_;
};

} // namespace troupe
