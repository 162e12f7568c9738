// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// All planners: pure functions from one problem to one plan. A planner is a file of
// searches/ and a row of the catalog; nothing registers itself.

#include "planner/problem.hpp"
#include "planner/search_options.hpp"

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace troupe::planner {

/// A planner's function for one kind of problem.
struct method {
  std::string_view kind;
  outcome (*search)(const any_problem&, const search_options&);
};

/// A row of the catalog.
struct planner_row {
  std::string_view name;
  std::string_view summary; ///< One line for --help.
  std::string_view paper;   ///< Authors, title and year; empty for a baseline.
  std::vector<method> methods;
  std::vector<std::string_view> options; ///< Names in search_options that it reads.

  /// The method for a kind of problem; null if the planner has none.
  const method* method_for(std::string_view kind) const;
};

/// All planners, in the order of tables.
const std::vector<planner_row>& catalog();

/// The names of all planners, with commas between them.
std::string names_of_planners();

/// A planner that a user asks for, with its options.
struct chosen_planner {
  const planner_row* row = nullptr;
  search_options options;
};

/// Parses "mcmc" or "mcmc:seed=3,chains=2". The error is one sentence with the allowed
/// names or values.
tl::expected<chosen_planner, std::string> parse_planner(std::string_view text);

/// Searches. The error is one sentence, also if the planner does not answer this kind.
outcome search(const chosen_planner& chosen, const any_problem& p);

} // namespace troupe::planner
