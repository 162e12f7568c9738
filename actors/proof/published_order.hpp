// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/published.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::published {

/// An action of a stage as it was recorded, from its first piece to its last.
struct recorded_action {
  op what;
  int microbatch;
  std::int64_t start; ///< nanoseconds
  std::int64_t end;
  int gradients = 0; ///< That an update covers.
};

/// What the times in a record are good for.
struct recorded_times {
  /// Nanoseconds from the end of an action to the arrival of what it made at another
  /// stage. Null where times are real: then nobody knows when something had arrived.
  std::function<std::int64_t(op what, int stage, int microbatch)> latency;
  bool updates_wait = false; ///< For somebody outside: they may begin late.
  std::int64_t doubt = 0;    ///< By so much the clocks of two stages may be apart.
};

/// Where the record of a line of stages, a row each, leaves AMPNet's rule (Gaunt et al.
/// 2017), in words; empty: nowhere. The rule is followed from choice to choice: an
/// update as soon as min_update_frequency gradients are summed; else the backward of
/// the lowest microbatch that has arrived; else the forward of the lowest one, at stage
/// 0 only while fewer than max_active_keys microbatches are in flight; and whatever it
/// is, as soon as possible. Stage 0 has the next microbatch when it begins one.
///
/// Without arrivals this much can be said: counts and bounds; that nothing begins
/// before its input has ended; that, as messages do not overtake one another, both
/// forwards and backwards go by microbatch; and that the last stage, whose backward
/// arrives with the end of the forward, runs it next.
std::string
first_breach_of_ampnet(const rule& by, const shape& dims,
                       const std::vector<std::vector<recorded_action>>& stages,
                       const recorded_times& times);

} // namespace troupe::published
