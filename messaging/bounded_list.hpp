// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// Entries of a run of any length: all of them up to `most`. From then on neighbours
/// are merged in pairs whenever the list is full, so that it holds `most` / 2 to
/// `most`.
template <class Entry>
class bounded_list {
public:
  /// \param most even, or 0: any number
  explicit bounded_list(std::size_t most) : most_(most) {
    // nop
  }

  /// \param merge makes one of two neighbours: merge(Entry& first, const Entry& second)
  template <class Merge>
  void add(const Entry& entry, const Merge& merge) {
    if (in_last_ < every_ && !entries_.empty()) {
      merge(entries_.back(), entry);
      ++in_last_;
      return;
    }
    if (most_ > 0 && entries_.size() == most_)
      halve(merge);
    entries_.push_back(entry);
    in_last_ = 1;
  }

  /// Removes entries from the end as long as they are late.
  template <class Predicate>
  void remove_last(const Predicate& is_late) {
    for (; !entries_.empty() && is_late(entries_.back()); entries_.pop_back())
      in_last_ = every_; // the next entry begins anew
  }

  const std::vector<Entry>& entries() const { return entries_; }

  /// How many that were added make an entry; the last may be of fewer.
  std::int64_t every() const { return every_; }

private:
  template <class Merge>
  void halve(const Merge& merge) {
    for (std::size_t i = 0; i < most_ / 2; ++i) {
      entries_[i] = entries_[2 * i];
      merge(entries_[i], entries_[2 * i + 1]);
    }
    entries_.resize(most_ / 2);
    every_ *= 2;
  }

  std::size_t most_;
  std::vector<Entry> entries_;
  std::int64_t every_ = 1;
  std::int64_t in_last_ = 0;
};

/// What lists of a run hold at most, if it may be of any length.
inline constexpr std::size_t most_entries = 10'000;

} // namespace troupe
