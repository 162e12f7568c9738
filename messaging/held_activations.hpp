// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Counts the activations that a rank holds: one definition for measures and traces.

#include "messaging/record.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace troupe {

/// Counts the stage-microbatches (a microbatch at a stage) that a rank holds: each from
/// the start of the forward to the end of the backward or weight gradient. A forward in
/// several parts starts with the first part. Actions of experts do not count.
class held_activations {
public:
  /// Adds an action, or a part of one, in the rank's order. Returns the time at which
  /// the count changed, in nanoseconds on the run's clock; absent if the count did not
  /// change.
  std::optional<nanoseconds> add(const measured_action& s) {
    if (s.expert >= 0)
      return {};
    if (s.action.op == op::forward)
      return add_forward(s);
    if (s.part || !adds_gradient(s.action.op))
      return {};
    --count_;
    return s.end;
  }

  int count() const { return count_; }
  int peak() const { return peak_; }

private:
  std::optional<nanoseconds> add_forward(const measured_action& s) {
    const auto entry = std::ranges::find(partial_forwards_, s.action);
    const bool goes_on = entry != partial_forwards_.end();
    if (s.part && !goes_on)
      partial_forwards_.push_back(s.action);
    else if (!s.part && goes_on)
      partial_forwards_.erase(entry);
    if (goes_on)
      return {};
    peak_ = std::max(peak_, ++count_);
    return s.start;
  }

  int count_ = 0;
  int peak_ = 0;
  std::vector<action> partial_forwards_; // forwards whose last part has not come
};

} // namespace troupe
