// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <tl/expected.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What a schedule file says beside its actions.
struct file_rules {
  std::string weights = "flush";
  int update_every = 0; ///< Microbatches; 0: a batch's.
  std::optional<int> microbatches = {};
  int most_held = 0;
  int directions = 1;

  static tl::expected<file_rules, std::string>
  parse(const std::map<std::string, std::string>& values);

  bool flushes() const { return weights == "flush"; }

  /// The weight rule, by where updates stand in the rows. \param rows of the whole run,
  /// unless it flushes
  weight_rule weights_of(const std::vector<std::vector<action>>& rows,
                         const shape& dims) const;
};

/// The line of a file that says the rules of a schedule; empty where they are the usual
/// ones.
std::string header_of(const schedule& sch, const shape& dims);

} // namespace troupe
