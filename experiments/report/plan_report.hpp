// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Answers of several planners to one case, as a table of text and as a page.

#include "planner/case_file.hpp"

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A planner's answer to a case. Costs have the case's unit.
struct planned_row {
  std::string planner; ///< The name with options, as typed.
  std::string paper;   ///< Empty for a baseline.
  std::string error;   ///< The reason why there is no answer; empty with an answer.
  planner::answer found;
  std::optional<double> judged; ///< By the cost model of the case's kind.
  std::string broken_rule;      ///< Of the kind; empty if the judge accepts the plan.
  double search_ms = 0;
};

struct planned_case {
  planner::named_problem problem;
  std::vector<planned_row> rows;
  /// The least cost of all plans; absent if an enumeration does not reach it.
  std::optional<double> optimum;
};

/// A line for each planner: predicted cost, cost by the judge, excess over the optimum
/// and time of the search.
std::string plan_table(const planned_case& planned);

/// Results as JSON text.
std::string plan_json(const planned_case& planned, const std::string& command);

/// A page of HTML with the table and the parts of each plan.
/// \param json text of plan_json()
std::string plan_page(const std::string& json);

} // namespace troupe
