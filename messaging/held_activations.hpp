// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a rank holds, counted in one place for measures and traces.

#include "messaging/record.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace troupe {

/// Stage-microbatches that a rank holds: each from the start of its forward, of whose
/// parts the first counts, to the end of its backward or weight gradient.
class held_activations {
public:
  /// Adds an action, or a part of one, in the rank's order. Returns when the count
  /// changed; empty if it did not.
  std::optional<nanoseconds> add(const measured_action& s) {
    if (s.expert >= 0)
      return {};
    if (s.what.what == op::forward)
      return add_forward(s);
    if (s.part || !adds_gradient(s.what.what))
      return {};
    --count_;
    return s.end;
  }

  int count() const { return count_; }
  int peak() const { return peak_; }

private:
  std::optional<nanoseconds> add_forward(const measured_action& s) {
    const auto found = std::ranges::find(begun_, s.what);
    const bool goes_on = found != begun_.end();
    if (s.part && !goes_on)
      begun_.push_back(s.what);
    else if (!s.part && goes_on)
      begun_.erase(found);
    if (goes_on)
      return {};
    peak_ = std::max(peak_, ++count_);
    return s.start;
  }

  int count_ = 0;
  int peak_ = 0;
  std::vector<action> begun_; // forwards that have parts to come
};

} // namespace troupe
