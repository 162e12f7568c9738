#pragma once

#include "schedules/schedule.hpp"

#include <optional>
#include <string>

namespace troupe {

/// What is wrong with the placement or the programs of a schedule.
struct program_fault {
  std::string what; ///< One sentence.
  std::string grid; ///< What ranks ran, and in brackets where they stand.
};

/// Runs the programs of all ranks without time and without arithmetic. Finds an action
/// whose input nobody makes, a deadlock, a forward or backward that is missing or comes
/// twice, backwards out of order (sums would depend on the schedule), an update that
/// covers too much or too little, and a placement that contradicts itself. A local rule
/// has no programs to run. Absent if all is well. \pre refusal(sch, dims).empty()
std::optional<program_fault> check(const schedule& sch, const shape& dims);

} // namespace troupe
