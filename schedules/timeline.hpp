// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// An action and when it ran, in nanoseconds of the run's clock.
struct timed_action {
  action what;
  std::int64_t start;
  std::int64_t end;
};

/// What each rank ran, in order.
using timeline = std::vector<std::vector<timed_action>>;

/// How a picture calls an action: "F3", or "2F3" of stage 2.
std::string cell_of(const action& a, bool with_stage);

/// Draws a timeline as text, a row a rank, a column a unit of time: the greatest that
/// divides all starts and ends, or more where the picture would be wider than
/// `max_columns`. A cell names the action that starts there, with its stage where a
/// rank has several of one direction; '=' continues it. A pair that ran as one is
/// "F3B1".
std::string draw(const timeline& drawn, int max_columns);

} // namespace troupe
