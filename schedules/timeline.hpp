// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <cstdint>
#include <string>
#include <vector>

// Timelines: the actions of ranks with times, and pictures in text.

namespace troupe {

/// An action with start and end, in nanoseconds of the run's clock. In a dry run, times
/// are in units of a forward (dry_run_record.hpp).
struct timed_action {
  troupe::action action;
  std::int64_t start;
  std::int64_t end;
};

/// The actions that each rank ran, in order.
using timeline = std::vector<std::vector<timed_action>>;

/// The name of an action in a picture: "F3", or "2F3" with stage 2.
std::string cell_of(const action& a, bool with_stage);

/// Draws a timeline as text, one row per rank and one column per unit of time. The unit
/// is the greatest that divides all starts and ends. If the picture would be wider than
/// `max_columns` columns, the unit is larger. A cell names the action that starts in
/// the column; '=' continues an action, and '.' is idle time. All names include the
/// stage if a rank ran several stages of one direction. A pair that ran as one action
/// is "F3B1".
std::string draw(const timeline& drawn, int max_columns);

} // namespace troupe
