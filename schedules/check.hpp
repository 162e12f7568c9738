// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <optional>
#include <string>

// The check of a schedule before a run: a dry run of all programs that finds the first
// error.

namespace troupe {

/// An error in the placement or the programs of a schedule.
struct program_error {
  std::string text; ///< One sentence.
  /// The last actions that the failed rank and its neighbours ran before the error, one
  /// row per rank (dry_run_record::draw). Brackets mark the failed rank's next action,
  /// and question marks other ranks' next actions. A next action later than the picture
  /// has no mark. Empty for errors of validation_error().
  std::string picture;
  std::string fix; ///< A simple fix in words, if one is known; else empty.
};

/// Returns the error, the picture and the fix, as lines of text. Empty fields are left
/// out.
std::string to_string(const program_error& fault);

/// Runs the programs of all ranks without time and without arithmetic, and returns the
/// first error; absent if there is none. Errors of validation_error(), for the sizes
/// and the placement, come first. A local rule has no programs, so nothing else is
/// checked. Recomputations that the schedule requests are not checked.
///
/// Errors of order are an action whose input no action makes, a deadlock, and a missing
/// or repeated pass (forward, backward, input gradient or weight gradient). Unless
/// sums_in_any_order, backwards or weight gradients of a stage out of order are an
/// error, because sums would depend on the schedule. Forwards out of order are an error
/// at stage 0, and for rules that keep versions without a flush. Every gradient needs
/// an update. An update may not cover too many or too few gradients. The microbatch of
/// an update is the highest of the update's gradients, or the last of the batch. No
/// forward may read a missing version. Further errors are a rank that holds more than
/// the limit, and two actions that are no pair. An action may not be of another rank's
/// stage, of another direction's microbatch, or outside of the run. A recomputation in
/// a program and a contradictory placement are errors, too.
std::optional<program_error> check(const schedule& sch, const shape& dims);

} // namespace troupe
