// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/chunks.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe {

chunks chunks::even(std::int64_t values, int count) {
  return {values, count};
}

chunks chunks::of_sizes(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> bounds{0};
  for (const auto size : sizes)
    bounds.push_back(bounds.back() + size);
  return chunks{std::move(bounds)};
}

chunks::chunks(std::vector<std::int64_t> bounds)
  : values_(0),
    count_(static_cast<int>(bounds.size()) - 1),
    bounds_(std::move(bounds)) {
  if (count_ < 1 || bounds_.front() != 0 || !std::ranges::is_sorted(bounds_))
    throw std::logic_error("the boundaries of chunks begin with 0 and never descend");
  values_ = bounds_.back();
}

std::int64_t chunks::begin(int c) const {
  return bounds_.empty() ? values_ * c / count_ : bounds_[static_cast<std::size_t>(c)];
}

std::int64_t chunks::size(chunk_range range) const {
  const auto parts = ranges(range);
  return parts[0].size() + parts[1].size();
}

std::array<value_range, 2> chunks::ranges(chunk_range range) const {
  const int end = range.first + range.count;
  if (end <= count_)
    return {value_range{begin(range.first), begin(end)}, value_range{}};
  return {value_range{begin(range.first), values_},
          value_range{0, begin(end - count_)}};
}

} // namespace troupe
