#pragma once

#include "schedules/schedule.hpp"

#include <cstdint>
#include <functional>
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

/// Whose gradients an update of a stage waits for, besides its own.
enum class update_barrier { replicas, all_stages };

/// Moves every action of `ran` to the time at which it would have run had each rank a
/// device to itself: the order of a rank and the lengths of its actions stay, starts
/// are as early as inputs allow. \param latency nanoseconds from the end of an action
/// to the arrival of its result on
///        another rank
/// \throws std::logic_error if an action of `ran` waits for one that is not in it
timeline lay_out(const schedule& sch, const shape& dims, const timeline& ran,
                 std::int64_t latency, update_barrier barrier);

/// Draws a timeline as text, a row a rank, a column a unit of time: the greatest that
/// divides all starts and ends, or more where the picture would be wider than
/// `max_columns`. A cell names the action that starts there; '=' continues it.
std::string draw(const timeline& drawn, int max_columns);

} // namespace troupe
