// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/plan_report.hpp"

#include "experiments/report/table_text.hpp"
#include "models/short_text.hpp"
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

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
  if (!row.found.best)
    return "nothing fits";
  return row.found.out_of_time
           ? "the time of the search was over: more seconds= may find a better plan"
           : "";
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text)
    switch (c) {
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '&':
      result += "&amp;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += c;
    }
  return result;
}

/// A part of a plan: a coloured box of the operators or layers, and the devices.
struct drawn_part {
  std::vector<int> members;
  std::string label;
};

/// Parts of a plan in order. Kinds without parts have none.
std::vector<drawn_part> parts_of(const ordered_json& plan) {
  std::vector<drawn_part> result;
  if (!plan.is_array())
    return result;
  std::size_t number = 0;
  for (const auto& part : plan) {
    if (part.is_number()) { // a device or a strategy for each operator
      const auto device = static_cast<std::size_t>(part.get<int>());
      if (result.size() <= device)
        result.resize(device + 1);
      result[device].members.push_back(static_cast<int>(number++));
      result[device].label = std::to_string(device);
      continue;
    }
    if (!part.is_object())
      return {};
    drawn_part drawn;
    if (part.contains("operators"))
      drawn.members = part["operators"].get<std::vector<int>>();
    else
      for (int l = part["first"].get<int>(); l <= part["last"].get<int>(); ++l)
        drawn.members.push_back(l);
    if (part.contains("device"))
      drawn.label = part["device"].get<std::string>();
    if (part.contains("tensor") && part["tensor"].get<int>() > 1)
      drawn.label += "tensor " + std::to_string(part["tensor"].get<int>()) + " ";
    if (part.contains("replicas"))
      drawn.label += "x " + std::to_string(part["replicas"].get<int>());
    if (part.contains("devices"))
      drawn.label += "x " + std::to_string(part["devices"].size());
    if (part.contains("submesh"))
      drawn.label += "submesh " + std::to_string(part["submesh"].get<int>());
    result.push_back(std::move(drawn));
  }
  return result;
}

/// Numbers as ranges: "0-4, 7".
std::string ranges(const std::vector<int>& numbers) {
  std::string result;
  for (std::size_t i = 0; i < numbers.size();) {
    auto end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1)
      ++end;
    result += (result.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (end > i)
      result += "-" + std::to_string(numbers[end]);
    i = end + 1;
  }
  return result;
}

/// A row of squares, one for each operator, coloured by part.
std::string drawing(const std::vector<drawn_part>& parts) {
  int count = 0;
  for (const auto& part : parts)
    for (const int member : part.members)
      count = std::max(count, member + 1);
  constexpr int width = 900, height = 22;
  std::string result = "<svg viewBox=\"0 0 " + std::to_string(width) + " "
                       + std::to_string(height) + "\" role=\"img\">";
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (const int member : parts[p].members) {
      char text[192];
      std::snprintf(text, sizeof text,
                    "<rect x=\"%.2f\" y=\"1\" width=\"%.2f\" height=\"20\" "
                    "fill=\"hsl(%d 60%% 62%%)\"><title>operator %d, part "
                    "%d</title></rect>",
                    width * static_cast<double>(member) / count,
                    std::max(width / static_cast<double>(count) - 0.6, 0.6),
                    static_cast<int>(p * 137 % 360), member, static_cast<int>(p));
      result += text;
    }
  result += "</svg><ol>";
  for (const auto& part : parts)
    result += "<li>" + ranges(part.members)
              + (part.label.empty() ? "" : " <b>" + escaped(part.label) + "</b>")
              + "</li>";
  return result + "</ol>";
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
  result += planned.optimum ? ", " + number_or_dash(planned.optimum) + "\n"
                            : "; unknown, as an enumeration does not reach it\n";
  return result;
}

std::string plan_page(const planned_case& planned) {
  const auto title =
    escaped(planned.problem.name + ", " + planner::kind_of(planned.problem.content));
  std::string rows, plans;
  for (const auto& row : planned.rows) {
    rows += "<tr><td>" + escaped(row.planner) + "</td><td>"
            + number_or_dash(row.found.cost) + "</td><td>" + number_or_dash(row.judged)
            + "</td><td>" + excess(row, planned.optimum) + "</td><td>"
            + number_or_dash(row.search_ms) + "</td><td class=\"text\">"
            + escaped(remark(row)) + "</td></tr>\n";
    if (!row.found.best)
      continue;
    const auto parts =
      parts_of(planner::to_json(row.found).value("plan", ordered_json{}));
    if (!parts.empty())
      plans += "<h2>" + escaped(row.planner) + "</h2>"
               + (row.paper.empty() ? "" : "<p>" + escaped(row.paper) + "</p>")
               + drawing(parts) + "\n";
  }
  return "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>" + title
         + "</title>\n<style>body{font:15px sans-serif;margin:2em auto;max-width:60em}"
           "td,th{padding:.2em .8em;text-align:right}td:first-child,.text{text-align:"
           "left}svg{width:100%}ol{columns:3}</style>\n<h1>"
         + title
         + "</h1>\n<table><tr><th>planner</th><th>predicted</th><th>judged</th><th>"
           "optimum</th><th>search ms</th><th></th></tr>\n"
         + rows + "</table>\n" + plans + "</html>\n";
}

std::string plan_json(const planned_case& planned, const std::string& command) {
  auto rows = ordered_json::array();
  for (const auto& row : planned.rows) {
    auto added = planner::to_json(row.found);
    added["planner"] = row.planner;
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
                            {"planners", rows}};
  return json_text(result, 2) + "\n";
}

} // namespace troupe
