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
/// clock on which a backward takes two forwards, and messages take no time.
class dry_run_record {
public:
  dry_run_record(std::size_t ranks, bool several_stages)
    : ran_(ranks), free_at_(ranks), several_stages_(several_stages) {
    // nop
  }

  /// Records that a rank runs an action whose input exists since `ready`. Times are in
  /// units of a forward. Returns the time at which the action ends.
  std::int64_t run(int rank, const action& a, std::int64_t ready);

  /// Draws the last columns of the ranks around `failed_rank`, with the next action of
  /// each rank. The next action of `failed_rank` is in brackets; next actions of other
  /// ranks have a question mark.
  std::string draw(int failed_rank,
                   const std::vector<std::optional<action>>& next) const;

private:
  timeline ran_;
  std::vector<std::int64_t> free_at_;
  bool several_stages_;
};

} // namespace troupe
