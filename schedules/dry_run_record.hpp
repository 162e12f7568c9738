// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/timeline.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// The picture of a dry run that ended with an error.

namespace troupe {

/// The actions of a wrong program that ranks ran before the error. The record has a
/// clock in units of a forward. On the clock, a backward takes 2, every other action 1,
/// and messages take no time.
class dry_run_record {
public:
  /// \param ranks number of ranks
  /// \param several_stages whether names of actions include the stage
  dry_run_record(std::size_t ranks, bool several_stages)
    : ran_(ranks), free_at_(ranks), several_stages_(several_stages) {
    // nop
  }

  /// Records that a rank runs an action whose input exists since `ready`. Times are in
  /// units of a forward. Returns the time at which the action ends.
  std::int64_t run(int rank, const action& a, std::int64_t ready);

  /// Draws `failed_rank` and up to 4 ranks on each side, with next actions. The picture
  /// has at most 16 units of a forward, and ends at most 4 units after the last action
  /// of `failed_rank`. The next action of `failed_rank` is in brackets; next actions of
  /// other ranks have a question mark. A next action later than the picture is left
  /// out.
  /// \param next one entry per rank; absent at the end of a rank's program
  std::string draw(int failed_rank,
                   const std::vector<std::optional<action>>& next) const;

private:
  timeline ran_;
  std::vector<std::int64_t> free_at_;
  bool several_stages_;
};

} // namespace troupe
