// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <optional>
#include <string>

namespace troupe {

/// What is wrong with the placement or the programs of a schedule.
struct program_fault {
  std::string what; ///< One sentence.
  /// What ranks had run until then, a row each, as if a backward took two forwards; in
  /// brackets the step that is wrong, with a question mark what others wait to run.
  std::string picture;
  std::string mend; ///< What would help, if that is simple; else empty.
};

/// All that it says, in lines.
std::string to_string(const program_fault& fault);

/// Runs the programs of all ranks without time and without arithmetic. Finds an action
/// whose input nobody makes, a deadlock, a forward or backward that is missing or comes
/// twice, backwards out of order (sums would depend on the schedule), an update that
/// covers too much or too little, a rank that holds more than it may, a version that is
/// not there, two that are no pair, and a placement that contradicts itself. A local
/// rule has no programs to run. Absent if all is well. What refusal() says comes first.
std::optional<program_fault> check(const schedule& sch, const shape& dims);

} // namespace troupe
