// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/published.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::published {

/// A recorded action of a stage, from the start of the first piece to the end of the
/// last.
struct recorded_action {
  op operation;
  int microbatch;
  std::int64_t start; ///< In nanoseconds; `end` too.
  std::int64_t end;
  int gradients = 0; ///< Number of gradients that an update covers; else 0.
};

/// Properties of a record's times that decide which checks are possible.
struct recorded_times {
  /// Nanoseconds from the end of an action to the arrival of its output at the
  /// neighbouring stage. Null where arrival times are unknown: in real time, and in
  /// virtual time if links limit the bandwidth.
  std::function<std::int64_t(op operation, int stage, int microbatch)> latency;
  bool updates_wait = false; ///< Updates may begin late, as servers answer late.
  std::int64_t doubt = 0;    ///< Largest clock difference of two stages, in ns.
};

/// Checks a record of a line of stages, one row each, against AMPNet's rule (Gaunt et
/// al. 2017). Returns the first breach as a sentence, or an empty string if there is
/// none. The check follows the rule from choice to choice:
///   - an update, as soon as min_update_frequency gradients are summed, or the run's
///     last gradient is summed;
///   - else the backward of the lowest microbatch that has arrived;
///   - else the forward of the lowest microbatch that has arrived; at stage 0, only
///     while fewer than max_active_keys microbatches are in flight.
/// Each choice must start as soon as possible, except updates if `times.updates_wait`.
/// Stage 0 has the next microbatch as soon as the stage begins the forward of the
/// previous microbatch.
///
/// Without arrival times (`times.latency` is null) the check is weaker. Counts and
/// bounds must hold. No action may begin before the stage's previous action has ended.
/// No action may begin more than `times.doubt` before the end of the action that makes
/// the input. Forwards run in the order of microbatches, and so do backwards, since
/// messages do not overtake one another. The last stage runs each microbatch's backward
/// before the next forward.
/// \param stages recorded actions by stage, each row in order of time
std::string
first_breach_of_ampnet(const rule& paper_rule, const shape& dims,
                       const std::vector<std::vector<recorded_action>>& stages,
                       const recorded_times& times);

} // namespace troupe::published
