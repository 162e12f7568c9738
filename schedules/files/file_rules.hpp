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
  int update_every = 0; ///< Microbatches that an update covers; 0: a batch.
  std::optional<int> microbatches = {};
  int most_held = 0;
  int directions = 1;

  /// Parses the keys and values of header lines. On error, one sentence says which
  /// value is wrong.
  static tl::expected<file_rules, std::string>
  parse(const std::map<std::string, std::string>& values);

  bool flushes() const { return weights == "flush"; }

  /// The weight rule; for stash and vertical_sync, derived from the positions of
  /// updates in the rows. \param rows of the whole run, unless the rule flushes
  weight_rule weights_of(const std::vector<std::vector<action>>& rows,
                         const shape& dims) const;
};

/// The header line of a file that states the rules of a schedule; empty if all rules
/// have the usual values.
std::string header_of(const schedule& sch, const shape& dims);

} // namespace troupe
