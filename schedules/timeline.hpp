#pragma once

#include "schedules/schedule.hpp"
#include "schedules/time_layout.hpp"

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

/// What a part of a pipeline's action waits for, and what it gives: activations and
/// gradients between stages. \param pipeline its number, where there are several
/// \param first,last whether it is the first part of the action, and the last
void add_messages(int stages, std::int64_t pipeline, const action& a, bool first,
                  bool last, time_layout::part& to);

/// Kinds of milestones behind those of add_messages.
inline constexpr int kinds_of_messages = 2;

/// Moves every action of `ran` to the time at which it would have run had each rank a
/// device to itself: the order of a rank and the lengths of its actions stay, starts
/// are as early as inputs allow. An update of a stage that both directions of a
/// schedule hold waits until both have come to it.
/// \throws std::logic_error if an action of `ran` waits for one that is not in it
timeline lay_out(const schedule& sch, const shape& dims, const timeline& ran);

/// Draws a timeline as text, a row a rank, a column a unit of time: the greatest that
/// divides all starts and ends, or more where the picture would be wider than
/// `max_columns`. A cell names the action that starts there; '=' continues it.
std::string draw(const timeline& drawn, int max_columns);

} // namespace troupe
