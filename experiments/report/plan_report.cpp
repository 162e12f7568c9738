// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/plan_report.hpp"

#include "experiments/report/page.hpp"
#include "experiments/report/table_text.hpp"
#include "models/short_text.hpp"
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

namespace {

using nlohmann::ordered_json;

std::string number_or_dash(const std::optional<double>& value) {
  return text(value, "%.6g");
}

/// The excess of a cost over the optimum: "+1.25%".
std::string excess(const planned_row& row, const std::optional<double>& optimum) {
  if (!row.judged || !optimum || *optimum <= 0)
    return row.judged && optimum && *row.judged == *optimum ? "+0.00%" : "-";
  return text((*row.judged / *optimum - 1) * 100, "%+.2f%%");
}

std::string remark(const planned_row& row) {
  if (!row.error.empty())
    return row.error;
  if (!row.broken_rule.empty())
    return row.broken_rule;
  std::string result;
  const auto add = [&](const std::string& sentence) {
    result += (result.empty() || sentence.empty() ? "" : "; ") + sentence;
  };
  if (!row.found.best)
    add("nothing fits");
  if (row.found.out_of_time)
    add("the time of the search was over: more seconds= may find a better plan");
  add(row.found.remark);
  return result;
}

/// Names of operators in their order; empty where the kind has none.
std::vector<std::string> operator_names(const planner::any_problem& problem) {
  std::vector<std::string> result;
  const auto add_all = [&](const auto& operators) {
    for (const auto& one : operators)
      if constexpr (requires { result.push_back(one.name); })
        result.push_back(one.name);
  };
  std::visit(
    [&](const auto& content) {
      if constexpr (requires { content.operators; })
        add_all(content.operators);
      else if constexpr (requires { content.nodes; })
        add_all(content.nodes);
    },
    problem);
  return result;
}

} // namespace

std::string plan_table(const planned_case& planned) {
  std::vector<std::vector<std::string>> rows(
    1, {"planner", "predicted", "judged", "optimum", "search ms"});
  for (const auto& row : planned.rows)
    rows.push_back({row.planner, number_or_dash(row.found.cost),
                    number_or_dash(row.judged), excess(row, planned.optimum),
                    text(row.search_ms, "%.2f")});
  auto result = planned.problem.name + ", " + planner::kind_of(planned.problem.content)
                + "\n\n" + in_columns(rows);
  for (const auto& row : planned.rows)
    if (const auto more = remark(row); !more.empty())
      result += "\n" + row.planner + ": " + more;
  result += "\npredicted: cost by the planner's own formula\n"
            "judged: cost by the formula of the case's kind\n"
            "optimum: excess of the judged cost over the least cost of all plans";
  result += planned.optimum
              ? ", " + number_or_dash(planned.optimum) + "\n"
              : "; unknown, as an enumeration does not reach it, or no plan "
                "fits\n";
  return result;
}

std::string plan_json(const planned_case& planned, const std::string& command) {
  auto rows = ordered_json::array();
  for (const auto& row : planned.rows) {
    auto added = planner::to_json(row.found);
    added["planner"] = row.planner;
    added["paper"] = row.paper;
    added["judged"] = row.judged ? ordered_json(*row.judged) : ordered_json(nullptr);
    added["search_ms"] = row.search_ms;
    added["remark"] = remark(row);
    rows.push_back(std::move(added));
  }
  const ordered_json result{{"command", command},
                            {"case", planned.problem.name},
                            {"kind", planner::kind_of(planned.problem.content)},
                            {"optimum", planned.optimum ? ordered_json(*planned.optimum)
                                                        : ordered_json(nullptr)},
                            {"operators", operator_names(planned.problem.content)},
                            {"planners", rows}};
  return json_text(result, 2) + "\n";
}

std::string plan_page(const std::string& json) {
  return page_with_data(planners_text, json);
}

} // namespace troupe
