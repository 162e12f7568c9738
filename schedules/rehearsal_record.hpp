// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/timeline.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What ranks have run of their programs, on a clock on which a backward takes two
/// forwards and messages no time: for the picture of a program that is wrong.
class rehearsal_record {
public:
  rehearsal_record(std::size_t ranks, bool several_stages)
    : ran_(ranks), free_at_(ranks), several_stages_(several_stages) {
    // nop
  }

  /// Notes that a rank runs an action whose input has been there since `ready`. Returns
  /// when it ends.
  std::int64_t run(int rank, const action& a, std::int64_t ready);

  /// The last columns of the ranks around the guilty one, with what all are to run
  /// next: in brackets its, with a question mark the others'.
  std::string draw(int guilty, const std::vector<std::optional<action>>& next) const;

private:
  timeline ran_;
  std::vector<std::int64_t> free_at_;
  bool several_stages_;
};

} // namespace troupe
