// SPDX-License-Identifier: BSD-3-Clause
// Cases {columns: [names, the last is seconds], rows: [[values, seconds or null]]}.

#include "planner/kinds/readers.hpp"

namespace troupe::planner {

options_problem read_options(const case_value& from) {
  options_problem result;
  const auto columns = from.member("columns").elements();
  if (columns.size() < 2)
    from.member("columns").fail("needs two names or more, the last of the seconds");
  for (std::size_t c = 0; c + 1 < columns.size(); ++c)
    result.columns.push_back(columns[c].text());
  for (const auto& element : from.member("rows").elements()) {
    const auto values = element.elements(columns.size());
    auto& added = result.rows.emplace_back();
    for (std::size_t c = 0; c < result.columns.size(); ++c) {
      if (values[c].json().is_string())
        added.values.emplace_back(values[c].text());
      else
        added.values.emplace_back(values[c].number());
    }
    if (!values.back().is_null())
      added.seconds = values.back().positive();
  }
  return result;
}

void write(nlohmann::ordered_json& to, const options_plan& plan) {
  auto values = nlohmann::ordered_json::array();
  for (const auto& value : plan.values)
    std::visit([&](const auto& content) { values.push_back(content); }, value);
  to["plan"] = std::move(values);
}

} // namespace troupe::planner
