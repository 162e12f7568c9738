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
  /// The last actions before the error of the ranks around the failed rank, one row per
  /// rank. A backward has the length of two forwards. Brackets mark the wrong action;
  /// question marks show the next actions of other ranks. Empty for errors of
  /// validation_error().
  std::string picture;
  std::string fix; ///< A simple fix in words, if one is known; else empty.
};

/// Returns the error, the picture and the fix, as lines of text.
std::string to_string(const program_error& fault);

/// Runs the programs of all ranks without time and without arithmetic, and returns the
/// first error; absent if there is none. Errors of validation_error() come first. A
/// local rule has no programs to run.
///
/// Errors of order are an action whose input no action makes, a deadlock, a missing or
/// repeated forward or backward, and backwards out of order. (Sums would depend on the
/// schedule.) An update may not cover too many or too few gradients, and no forward may
/// read a missing version. Further errors are a rank that holds more than the limit,
/// two actions that are no pair, and a contradictory placement.
std::optional<program_error> check(const schedule& sch, const shape& dims);

} // namespace troupe
