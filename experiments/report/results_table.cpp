// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/other_programs.hpp"
#include "experiments/report/results.hpp"
#include "experiments/report/results_legend.hpp"
#include "experiments/report/table_text.hpp"

#include <algorithm>
#include <functional>
#include <limits>

namespace troupe {

namespace {

double mean(const std::vector<nanoseconds>& times) {
  double sum = 0;
  for (const auto t : times)
    sum += static_cast<double>(t);
  return times.empty() ? 0 : sum / static_cast<double>(times.size());
}

/// A unit of time, in nanoseconds.
struct time_unit {
  const char* name;
  double length;
};

/// The largest unit in which no makespan is below a tenth.
time_unit unit_for(const std::vector<run_account>& runs) {
  double shortest = std::numeric_limits<double>::max();
  for (const auto& run : runs)
    if (const auto makespan = static_cast<double>(run.result.sums.makespan);
        makespan > 0 && run.outcome() != ending::failed)
      shortest = std::min(shortest, makespan);
  constexpr time_unit units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}};
  for (const auto& unit : units)
    if (shortest >= unit.length / 10)
      return unit;
  return {"ns", 1};
}

/// The number of last samples whose mean loss is shown. The number is a batch, or more
/// if an entry of the losses covers more. 0 if there are no losses.
std::int64_t samples_of_loss(const std::vector<run_account>& runs) {
  std::int64_t result = 0;
  for (const auto& run : runs)
    if (const auto losses = run.losses(); !losses.samples.empty()) {
      const auto& ends = losses.samples;
      const auto previous_end =
        ends.size() > 1 ? *(ends.rbegin() + 1) : losses.samples_before;
      result =
        std::max({result, run.request->plan.work->batch, ends.back() - previous_end});
    }
  return result;
}

struct column {
  std::string head;
  std::function<std::string(const run_account&)> cell;
};

std::string staleness_of(const run_account& run) {
  double mean_of_stalest = 0;
  for (const double s : run.result.sums.mean_staleness)
    mean_of_stalest = std::max(mean_of_stalest, s);
  return largest(run.result.sums.max_staleness) + text(mean_of_stalest, " (%.2f)");
}

std::string mebibytes_of(const run_account& run) {
  const auto& bytes = run.result.peak_bytes;
  if (bytes.empty())
    return "-";
  return text(static_cast<double>(*std::ranges::max_element(bytes)) / (1 << 20),
              "%.1f");
}

/// The columns of every table.
std::vector<column> common_columns(const time_unit& unit) {
  const auto in_units = [unit](double time) {
    return text(time / unit.length, "%.3f");
  };
  const std::string suffix = " " + std::string{unit.name};
  return {
    {"timing", [](const run_account& run) { return name_of(run.timing()); }},
    {"makespan" + suffix,
     [in_units](const run_account& run) {
       return in_units(static_cast<double>(run.result.sums.makespan));
     }},
    {"idle" + suffix,
     [in_units](const run_account& run) {
       return in_units(mean(run.result.sums.idle()));
     }},
    {"bubble",
     [](const run_account& run) {
       return text(100 * run.result.sums.bubble(), "%.1f%%");
     }},
    {"activations",
     [](const run_account& run) { return largest(run.result.sums.peak_activations); }},
    {"versions",
     [](const run_account& run) { return largest(run.result.sums.weight_versions); }},
    {"staleness", staleness_of},
  };
}

/// The columns of a table; a table of trainings has more.
/// \param samples over which a loss is the mean
/// \param shortest time at which losses are compared; absent: no such column
/// \param target of --target-loss
std::vector<column> columns_of(const training* work, const time_unit& unit,
                               std::int64_t samples, std::optional<double> shortest,
                               std::optional<double> target) {
  auto result = common_columns(unit);
  if (work == nullptr)
    return result;
  std::vector<column> speeds{{"samples/s", [](const run_account& run) {
                                return text(run.samples_per_second(), "%.1f");
                              }}};
  if (work->whole.reads_tokens)
    speeds.push_back({"tokens/s", [](const run_account& run) {
                        return text(run.tokens_per_second(), "%.0f");
                      }});
  result.insert(result.begin(), speeds.begin(), speeds.end());
  const auto versions = std::ranges::find(result, "versions", &column::head);
  result.insert(versions, {"MiB/rank", mebibytes_of});
  result.push_back({"loss", [samples](const run_account& run) {
                      const auto curve = run.curve();
                      return text(mean_loss(curve, curve.loss.size(), samples), "%.4f");
                    }});
  const std::string suffix = std::string{" "} + unit.name;
  const auto in_units = [unit](std::optional<double> seconds) {
    return text(seconds ? std::optional{*seconds * 1e9 / unit.length} : seconds,
                "%.3f");
  };
  if (shortest)
    result.push_back(
      {"loss at " + in_units(shortest) + suffix, [shortest](const run_account& run) {
         return text(loss_after(run.curve(), *shortest, window_of(run)), "%.4f");
       }});
  if (target) {
    const auto reached = [target](const run_account& run) {
      return first_at(run.curve(), *target, window_of(run));
    };
    const auto name = " to " + text(target, "%.3f");
    result.push_back({"samples" + name, [reached](const run_account& run) {
                        const auto end = reached(run);
                        return end ? std::to_string(end->samples) : "-";
                      }});
    result.push_back({unit.name + name, [reached, in_units](const run_account& run) {
                        const auto end = reached(run);
                        return in_units(end ? end->seconds : std::nullopt);
                      }});
  }
  result.push_back({"evaluated", [](const run_account& run) {
                      return run.evaluated ? text(run.evaluated->loss, "%.4f") : "-";
                    }});
  if (!work->whole.reads_tokens)
    result.push_back({"accuracy", [](const run_account& run) {
                        return run.evaluated && run.evaluated->accuracy
                                 ? text(100 * *run.evaluated->accuracy, "%.1f%%")
                                 : "-";
                      }});
  return result;
}

std::optional<double> share_of(const run_account& run) {
  return other_programs_share(run.request->plan, run.result);
}

/// Adds a column beside the bubble if the share is known of some run.
void add_other_programs(const std::vector<run_account>& runs,
                        std::vector<column>& columns) {
  if (std::ranges::none_of(runs,
                           [](const auto& run) { return share_of(run).has_value(); }))
    return;
  const auto bubble = std::ranges::find(columns, "bubble", &column::head);
  columns.insert(bubble + 1, {"other programs", [](const run_account& run) {
                                const auto share = share_of(run);
                                return share ? text(100 * *share, "%.1f%%") : "-";
                              }});
}

std::string rows_of(const setup& shared, const std::vector<run_account>& runs,
                    const std::vector<column>& columns) {
  std::vector<std::vector<std::string>> rows(1, {"schedule"});
  for (const auto& c : columns)
    rows.front().push_back(c.head);
  const std::vector<std::string> unknown(columns.size(), "-");
  for (const auto& run : runs) {
    const bool failed = run.outcome() == ending::failed;
    auto& row = rows.emplace_back();
    row.push_back(run.request->text
                  + (failed                                 ? " (failed)"
                     : run.outcome() == ending::interrupted ? " (interrupted)"
                                                            : ""));
    if (failed)
      row.insert(row.end(), unknown.begin(), unknown.end());
    else
      for (const auto& c : columns)
        row.push_back(c.cell(run));
  }
  for (auto i = runs.size(); i < shared.runs.size(); ++i) {
    auto& row = rows.emplace_back(1, shared.runs[i].text + " (not begun)");
    row.insert(row.end(), unknown.begin(), unknown.end());
  }
  return in_columns(rows);
}

} // namespace

std::string results_table(const setup& shared, const std::vector<run_account>& runs,
                          std::optional<double> target) {
  const auto& work = shared.runs.front().plan.work;
  const auto samples = samples_of_loss(runs);
  const auto shortest = runs.size() > 1 ? shortest_time(runs) : std::nullopt;
  auto columns =
    columns_of(work ? &*work : nullptr, unit_for(runs), samples, shortest, target);
  add_other_programs(runs, columns);
  return rows_of(shared, runs, columns)
         + results_legend(shared, runs, {samples, shortest, target});
}

} // namespace troupe
