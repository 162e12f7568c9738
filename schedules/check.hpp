#pragma once

#include "schedules/schedule.hpp"

#include <optional>
#include <string>

namespace troupe {

/// What is wrong with the programs of a schedule.
struct program_fault {
  std::string what; ///< One sentence.
  std::string grid; ///< What each rank ran, and in brackets where it stands.
};

/// Runs the programs of all ranks without time and without arithmetic. Finds an action
/// whose input nobody makes, a deadlock, a forward or backward that is missing or comes
/// twice, backwards out of order (sums would depend on the schedule), and an update
/// that covers too much or too little. Absent if all is well, or if ranks follow a
/// local rule. \pre refusal(sch, dims).empty()
std::optional<program_fault> check(const schedule& sch, const shape& dims);

} // namespace troupe
