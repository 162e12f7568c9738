// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/action.hpp"

#include <cstddef>
#include <optional>
#include <vector>

// The queue of a rank's actions that have arrived and wait for a grant.

namespace troupe {

/// The actions of one rank whose inputs have arrived and that are not granted yet. A
/// gradient arrives as a `backward`, whether the rank runs B or I and W. Comparisons
/// ignore action::pair.
class waiting {
public:
  void add(const action& a);

  bool has(const action& a) const;

  /// Removes `a`. Returns false if `a` has not arrived.
  bool remove(const action& a);

  /// All actions of one operation from `first_stage` on, sorted by direction, stage and
  /// microbatch.
  std::vector<action> find_all(op operation, int first_stage = 0) const;

  /// The action of one operation with the lowest microbatch, at stages from
  /// `first_stage` on; of equal microbatches, at the lowest stage. Absent if there is
  /// none.
  std::optional<action> lowest(op operation, int first_stage = 0) const;

private:
  /// Microbatches in increasing order; entries before index `first` have been removed.
  /// Nearly all removals are at the front.
  struct channel {
    op operation;
    int direction;
    int stage;
    std::vector<int> microbatches;
    std::size_t first = 0;
  };

  channel* find(const action& a);

  std::vector<channel> channels_;
};

} // namespace troupe
