// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/study/study_tables.hpp"

#include "experiments/report/table_text.hpp"
#include "models/short_text.hpp"
#include "models/utf8.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace troupe {

namespace {

/// A schedule under a combination of varied options.
using cell = std::pair<std::vector<std::string>, std::string>;

cell cell_of(const study_run& run) {
  return {run.values, run.schedule};
}

/// The combinations, in the order of the runs.
std::vector<cell> cells_of(const study_plan& plan) {
  std::vector<cell> result;
  std::set<cell> known;
  for (const auto& run : plan.runs)
    if (known.insert(cell_of(run)).second)
      result.push_back(cell_of(run));
  return result;
}

std::optional<spread> spread_of(const std::vector<double>& values) {
  if (values.empty())
    return {};
  spread result{.count = static_cast<int>(values.size())};
  const auto [least, most] = std::ranges::minmax(values);
  for (const double value : values)
    result.mean += value;
  result.mean = least == most ? least : result.mean / result.count;
  if (values.size() > 1) {
    double squares = 0;
    for (const double value : values)
      squares += (value - result.mean) * (value - result.mean);
    result.deviation = std::sqrt(squares / (result.count - 1));
  }
  return result;
}

/// The values of one measure by seed, of the runs of a cell that finished.
using by_seed = std::map<std::string, double>;

std::optional<spread> difference_of(const by_seed& values, const by_seed& reference) {
  std::vector<double> differences;
  for (const auto& [seed, value] : values)
    if (const auto other = reference.find(seed); other != reference.end())
      differences.push_back(value - other->second);
  return spread_of(differences);
}

/// A field of a CSV file (RFC 4180).
std::string quoted(const std::string& raw) {
  const auto text = utf8(raw);
  if (text.find_first_of(",\"\n\r") == std::string::npos)
    return text;
  std::string result = "\"";
  for (const char c : text)
    result += c == '"' ? std::string{"\"\""} : std::string{c};
  return result + '"';
}

std::string number(std::optional<double> value) {
  return value && std::isfinite(*value) ? exact_text(*value) : "";
}

std::string line_of(const std::vector<std::string>& fields) {
  std::string result;
  for (const auto& field : fields)
    result += (&field == &fields.front() ? "" : ",") + quoted(field);
  return result + "\n";
}

/// "0.2731 +- 0.0012"
std::string spread_text(const spread& of, const char* format) {
  return text(of.mean, format)
         + (of.deviation ? " +- " + text(of.deviation, format) : "");
}

/// A column of the table for the terminal.
struct table_column {
  const char* key;
  const char* head;
  const char* format;
  double scale = 1;
};

constexpr table_column table_columns[] = {
  {"bubble", "bubble %", "%.2f", 100},
  {"makespan_seconds", "makespan s", "%.4g"},
  {"peak_microbatches", "activations", "%.4g"},
  {"peak_bytes", "MiB/rank", "%.1f", 1.0 / (1 << 20)},
  {"staleness_max", "staleness", "%.4g"},
  {"loss_nats", "loss", "%.4f"},
  {"evaluation_loss_nats", "evaluated", "%.4f"},
  {"target_samples", "samples to target", "%.0f"},
  {"target_seconds", "s to target", "%.3f"},
};

spread scaled(spread of, double factor) {
  of.mean *= factor;
  if (of.deviation)
    *of.deviation *= factor;
  return of;
}

} // namespace

std::vector<study_summary> summaries_of(const study_plan& plan,
                                        const std::vector<measured_run>& runs) {
  std::vector<study_summary> result;
  const auto cells = cells_of(plan);
  const auto measures = study_measures();
  for (std::size_t m = 0; m < measures.size(); ++m) {
    std::map<cell, by_seed> values;
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (runs[i].ending == "finished")
        if (const auto value = runs[i].values[m]; value && std::isfinite(*value))
          values[cell_of(plan.runs[i])].emplace(plan.runs[i].seed, *value);
    if (values.empty())
      continue;
    const auto& reference = plan.runs.front().schedule;
    for (const auto& where : cells) {
      const auto& local = values[where];
      std::vector<double> numbers;
      for (const auto& [seed, value] : local)
        numbers.push_back(value);
      const auto over_seeds = spread_of(numbers);
      if (!over_seeds)
        continue;
      auto difference = where.second == reference
                          ? std::nullopt
                          : difference_of(local, values[{where.first, reference}]);
      result.push_back({where.second, where.first, m, *over_seeds, difference});
    }
  }
  return result;
}

std::string runs_csv(const study_plan& plan, const std::vector<measured_run>& runs) {
  std::vector<std::string> head{"run", "schedule"};
  head.insert(head.end(), plan.varied.begin(), plan.varied.end());
  for (const auto& [name, value] : plan.fixed)
    head.push_back(name);
  if (has_seeds(plan))
    head.emplace_back("seed");
  for (const char* name : {"ending", "error", "timing"})
    head.emplace_back(name);
  for (const auto& measure : study_measures())
    head.emplace_back(measure.key);
  auto result = line_of(head);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& run = plan.runs[i];
    std::vector<std::string> fields{std::to_string(i + 1), run.schedule};
    fields.insert(fields.end(), run.values.begin(), run.values.end());
    for (const auto& [name, value] : plan.fixed)
      fields.push_back(value);
    if (has_seeds(plan))
      fields.push_back(run.seed);
    fields.insert(fields.end(), {runs[i].ending, runs[i].error, runs[i].timing});
    for (const auto& value : runs[i].values)
      fields.push_back(number(value));
    result += line_of(fields);
  }
  return result;
}

std::string summary_csv(const study_plan& plan,
                        const std::vector<study_summary>& summaries) {
  std::vector<std::string> head{"schedule"};
  head.insert(head.end(), plan.varied.begin(), plan.varied.end());
  for (const char* name : {"measure", "mean", "deviation", "n", "compared_with",
                           "difference_mean", "difference_deviation", "difference_n"})
    head.emplace_back(name);
  auto result = line_of(head);
  for (const auto& s : summaries) {
    std::vector<std::string> fields{s.schedule};
    fields.insert(fields.end(), s.values.begin(), s.values.end());
    fields.insert(fields.end(),
                  {study_measures()[s.measure].key, number(s.over_seeds.mean),
                   number(s.over_seeds.deviation), std::to_string(s.over_seeds.count)});
    if (const auto& d = s.difference)
      fields.insert(fields.end(), {plan.runs.front().schedule, number(d->mean),
                                   number(d->deviation), std::to_string(d->count)});
    else
      fields.resize(fields.size() + 4);
    result += line_of(fields);
  }
  return result;
}

std::string study_table(const study_plan& plan, const std::vector<measured_run>& runs,
                        const std::vector<study_summary>& summaries) {
  const auto measures = study_measures();
  std::map<std::pair<cell, std::string>, spread> known;
  std::set<std::string> present;
  for (const auto& s : summaries) {
    known.emplace(std::pair{cell{s.values, s.schedule}, measures[s.measure].key},
                  s.over_seeds);
    present.insert(measures[s.measure].key);
  }
  std::vector<std::vector<std::string>> rows(1, {"schedule"});
  auto& head = rows.front();
  head.insert(head.end(), plan.varied.begin(), plan.varied.end());
  if (has_seeds(plan))
    head.emplace_back("runs");
  for (const auto& column : table_columns)
    if (present.contains(column.key))
      head.emplace_back(column.head);
  std::map<cell, int> finished;
  for (std::size_t i = 0; i < runs.size(); ++i)
    finished[cell_of(plan.runs[i])] += runs[i].ending == "finished";
  for (const auto& where : cells_of(plan)) {
    std::vector<std::string> row{where.second};
    row.insert(row.end(), where.first.begin(), where.first.end());
    if (has_seeds(plan))
      row.push_back(std::to_string(finished[where]));
    for (const auto& column : table_columns) {
      if (!present.contains(column.key))
        continue;
      const auto entry = known.find({where, column.key});
      row.push_back(
        entry == known.end()
          ? "-"
          : spread_text(scaled(entry->second, column.scale), column.format));
    }
    rows.push_back(std::move(row));
  }
  auto result = in_columns(rows);
  std::map<std::string, int> errors;
  for (const auto& run : runs)
    if (!run.error.empty())
      ++errors[run.ending + ": " + run.error];
  for (const auto& [error, count] : errors)
    result += "\n" + std::to_string(count) + (count == 1 ? " run " : " runs ") + error;
  if (const auto warning = busy_warning(runs); !warning.empty())
    result += "\n" + warning;
  return result + "\n";
}

} // namespace troupe
