// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/action.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace troupe {

/// The actions of one rank whose inputs have arrived and that nobody has granted yet. A
/// gradient makes a `backward` wait, whether the rank will run it as B or as I and W.
class waiting {
public:
  void add(const action& a);

  bool has(const action& a) const;

  /// Removes `a`; false if it is not here.
  bool take(const action& a);

  /// All of this kind from that stage on, by stage and microbatch.
  std::vector<action> all(op what, int first_stage = 0) const;

  /// The action of this kind with the lowest microbatch, on the lowest stage from
  /// `first_stage` on.
  std::optional<action> lowest(op what, int first_stage = 0) const;

private:
  /// Microbatches in increasing order, from `first` on; nearly always a queue.
  struct channel {
    op what;
    int direction;
    int stage;
    std::vector<int> microbatches;
    std::size_t first = 0;
  };

  channel* find(const action& a);

  std::vector<channel> channels_;
};

} // namespace troupe
