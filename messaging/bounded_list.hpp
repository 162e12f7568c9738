// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// A list of entries for runs of any length. The list never holds more than `most`
/// entries, unless `most` is 0. The list keeps every entry up to `most` entries. From
/// then on, a full list merges neighbours in pairs, and holds `most` / 2 to `most`
/// entries, until remove_last() removes some.
template <class Entry>
class bounded_list {
public:
  /// \param most the largest number of entries: even, or 0 for no bound
  explicit bounded_list(std::size_t most) : most_(most) {
    // nop
  }

  /// Adds an entry. If the last entry covers fewer than every() added entries, the list
  /// merges the new entry into the last entry.
  /// \param merge adds the second of two neighbours to the first: merge(Entry& first,
  /// const Entry& second)
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

  /// Removes entries from the end of the list while is_late(last entry) is true.
  template <class Predicate>
  void remove_last(const Predicate& is_late) {
    for (; !entries_.empty() && is_late(entries_.back()); entries_.pop_back())
      in_last_ = every_; // the next entry is never merged into an older one
  }

  /// The entries, in order; valid until the next change of the list.
  const std::vector<Entry>& entries() const { return entries_; }

  /// The number of added entries that one entry of the list covers; the last entry may
  /// cover fewer.
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

/// The largest number of entries that the program keeps per list of a run, however long
/// the run is.
inline constexpr std::size_t most_entries = 10'000;

} // namespace troupe
