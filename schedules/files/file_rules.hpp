// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <tl/expected.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

// The rules in the header of a schedule file: weights, updates, limits and directions.

namespace troupe {

/// The rules of a schedule file, in addition to the actions.
struct file_rules {
  std::string weights = "flush";
  /// Microbatches that an update covers; 0: all microbatches of a batch.
  int update_every = 0;
  /// Microbatches of a batch. Absent if the header has no such key: the file then has
  /// one batch.
  std::optional<int> microbatches = {};
  int most_held = 0; ///< Most stage-microbatches that a rank may hold; 0: no limit.
  int directions = 1;

  /// Parses the keys and values of header lines. On error, one sentence says which key
  /// or value is wrong, or which values contradict each other.
  static tl::expected<file_rules, std::string>
  parse(const std::map<std::string, std::string>& values);

  bool flushes() const { return weights == "flush"; }

  /// Returns the weight rule. For stash and vertical_sync, the positions of updates in
  /// the rows decide the versions.
  /// \param rows the actions of each rank over the whole run; used only for stash and
  /// vertical_sync
  weight_rule weights_of(const std::vector<std::vector<action>>& rows,
                         const shape& dims) const;
};

/// Returns the header line that states the rules of a schedule in a file. Empty if the
/// schedule flushes and has one direction and no limit of held microbatches.
std::string header_of(const schedule& sch, const shape& dims);

} // namespace troupe
