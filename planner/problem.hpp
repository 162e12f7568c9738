// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A problem of planning, and a plan: values of one of several kinds. Each kind has its
// cost model, which judges plans of all planners that answer the kind.

#include "planner/kinds/alpa.hpp"
#include "planner/kinds/dapple.hpp"
#include "planner/kinds/intra.hpp"
#include "planner/kinds/options.hpp"
#include "planner/kinds/pipedream.hpp"
#include "planner/kinds/piper.hpp"
#include "planner/kinds/placement.hpp"
#include "planner/kinds/propagation.hpp"
#include "planner/kinds/tarnawski.hpp"

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <variant>

namespace troupe::planner {

using any_problem =
  std::variant<pipedream_problem, tarnawski_problem, piper_problem, alpa_problem,
               dapple_problem, dapple_latency_problem, placement_problem, intra_problem,
               propagation_problem, options_problem>;

/// Plans in the order of the problems.
using any_plan = std::variant<pipedream_plan, tarnawski_plan, piper_plan, alpa_plan,
                              dapple_plan, dapple_latency, placement_plan, intra_plan,
                              propagation_plan, options_plan>;

/// The name of a problem's kind.
inline std::string kind_of(const any_problem& p) {
  return std::visit([](const auto& content) { return std::string{content.kind}; }, p);
}

/// The result of a search.
struct answer {
  std::optional<double> cost;   ///< By the planner's own formula; absent: nothing fits.
  std::optional<any_plan> best; ///< Absent: nothing fits.
  /// The search's time was over: the plan may not be the best, nor the same next time.
  bool out_of_time = false;
  std::string remark; ///< A sentence about the plan, as what the planner did not know.
};

/// An answer, or one sentence why the planner cannot search.
using outcome = tl::expected<answer, std::string>;

/// The answer of a planner whose formula is the kind's: the plan with its cost.
template <class Problem, class Plan>
outcome judged(const Problem& p, Plan best) {
  const auto paid = cost(p, best);
  if (!paid)
    return tl::unexpected{"the planner's plan breaks a rule: " + paid.error()};
  return answer{*paid, any_plan{std::move(best)}};
}

/// The cost of a plan by the kind's cost model. The error is one sentence about the
/// rule that the plan breaks, or about a plan of another kind.
tl::expected<double, std::string> judge(const any_problem& p, const any_plan& best);

} // namespace troupe::planner
