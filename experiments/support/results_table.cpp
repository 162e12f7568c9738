#include "experiments/support/expert_report.hpp"
#include "experiments/support/results.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <set>

namespace troupe {

namespace {

/// Columns of text, as wide as they must be; the first to the left, the others to the
/// right.
std::string in_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths.resize(std::max(widths.size(), c + 1));
      widths[c] = std::max(widths[c], row[c].size());
    }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - row[c].size(), ' ');
      text += c == 0 ? row[c] + space : "  " + space + row[c];
    }
    text += '\n';
  }
  return text;
}

std::string text(std::optional<double> x, const char* format) {
  if (!x || !std::isfinite(*x))
    return "-";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, *x);
  return buffer;
}

template <class Value>
std::string largest(const std::vector<Value>& values) {
  return values.empty() ? "-" : std::to_string(*std::ranges::max_element(values));
}

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
        makespan > 0 && run.how() != ending::failed)
      shortest = std::min(shortest, makespan);
  constexpr time_unit units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}};
  for (const auto& unit : units)
    if (shortest >= unit.length / 10)
      return unit;
  return {"ns", 1};
}

/// The last samples whose mean loss is told: a batch, or more where an entry of a run's
/// losses covers more.
std::int64_t samples_of_loss(const std::vector<run_account>& runs) {
  std::int64_t result = 0;
  for (const auto& run : runs) {
    if (run.request->plan.work)
      result = std::max(result, run.request->plan.work->batch);
    const auto& seen = run.result.loss_samples;
    if (!seen.empty())
      result =
        std::max(result, seen.back() - (seen.size() > 1 ? *(seen.rbegin() + 1) : 0));
  }
  return result;
}

/// The mean loss of a run's last samples: of the oldest entry only as many as are
/// missing.
std::optional<double> last_loss(const run_result& run, std::int64_t samples) {
  double sum = 0;
  std::int64_t count = 0;
  for (auto i = run.loss.size(); i-- > 0 && count < samples;) {
    const auto before = i > 0 ? run.loss_samples[i - 1] : 0;
    const auto part = std::min(run.loss_samples[i] - before, samples - count);
    sum += run.loss[i] * static_cast<double>(part);
    count += part;
  }
  return count > 0 ? std::optional{sum / static_cast<double>(count)} : std::nullopt;
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
  const std::string behind = " " + std::string{unit.name};
  return {
    {"timing", [](const run_account& run) { return name_of(run.timing()); }},
    {"makespan" + behind,
     [in_units](const run_account& run) {
       return in_units(static_cast<double>(run.result.sums.makespan));
     }},
    {"idle" + behind,
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

/// The columns of a table: more of them where something is trained.
std::vector<column> columns_of(const training* work, const time_unit& unit,
                               std::int64_t samples) {
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
                      return text(last_loss(run.result, samples), "%.4f");
                    }});
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

std::string rows_of(const setup& shared, const std::vector<run_account>& runs,
                    const std::vector<column>& columns) {
  std::vector<std::vector<std::string>> rows(1, {"schedule"});
  for (const auto& c : columns)
    rows.front().push_back(c.head);
  const std::vector<std::string> unknown(columns.size(), "-");
  for (const auto& run : runs) {
    const bool failed = run.how() == ending::failed;
    auto& row = rows.emplace_back();
    row.push_back(run.request->text
                  + (failed                             ? " (failed)"
                     : run.how() == ending::interrupted ? " (interrupted)"
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

/// What the words in the column of timing mean, of those that stand there.
std::string timing_legend(const setup& shared, const std::vector<run_account>& runs) {
  std::set<timing_kind> told;
  for (const auto& run : runs)
    if (run.how() != ending::failed)
      told.insert(run.timing());
  std::string result;
  if (told.contains(timing_kind::modelled))
    result += "\nmodelled: makespan, idle and bubble are laid out from the measured "
              "length of each action with one\ndevice a rank, as there are fewer "
              "threads than ranks; samples/s is the wall's";
  if (told.contains(timing_kind::shared))
    result += "\nshared: times are the wall's while ranks took turns on fewer threads "
              "than ranks; with a device for\neach rank they would be others";
  if (told.contains(timing_kind::virtual_time))
    result +=
      "\nvirtual: every time and rate is the virtual clock's, at " + shared.rates;
  return result;
}

/// One line for each run that has something to say, behind one another.
std::string each(const std::vector<run_account>& runs,
                 const std::function<std::string(const run_account&)>& say) {
  std::string result;
  for (const auto& run : runs)
    if (const auto said = say(run); !said.empty())
      result += (result.empty() ? "" : "; ") + run.request->text + ": " + said;
  return result;
}

std::string exchange_legend(const std::vector<run_account>& runs) {
  const auto said = each(runs, [](const run_account& run) -> std::string {
    const auto& of = run.result.exchange;
    if (of.max.empty())
      return "";
    return largest(of.max) + text(*std::ranges::max_element(of.mean), " (%.2f)");
  });
  return said.empty() ? ""
                      : "\nupdates of others between what a data replica read and its "
                        "own, of the stalest update (mean of its\nstage): "
                          + said;
}

std::string expert_legend(const std::vector<run_account>& runs) {
  const auto said = each(runs, [](const run_account& run) -> std::string {
    return run.result.loads.of.empty() ? "" : summary_of(run.result.loads);
  });
  return said.empty()
           ? ""
           : "\nexperts: rows of the fullest over the mean of its layer, and "
             "choices dropped, in the last tenth of\nthe steps: "
               + said;
}

std::string ending_legend(const std::vector<run_account>& runs) {
  const auto said = each(runs, [](const run_account& run) -> std::string {
    if (run.how() != ending::interrupted)
      return "";
    if (run.result.how == ending::finished)
      return "trained to its end and not evaluated";
    const auto& plan = run.request->plan;
    return plan.work
             ? std::to_string(run.result.samples) + " of "
                 + std::to_string(plan.work->batch * plan.dims.steps) + " samples"
             : "part of its steps";
  });
  return said.empty() ? "" : "\ninterrupted before its time: " + said;
}

} // namespace

std::string results_table(const setup& shared, const std::vector<run_account>& runs) {
  const auto& work = shared.runs.front().plan.work;
  const auto samples = samples_of_loss(runs);
  auto result =
    rows_of(shared, runs, columns_of(work ? &*work : nullptr, unit_for(runs), samples));
  result += "\nidle: mean over ranks of makespan - busy; bubble: mean over ranks of "
            "idle / makespan;\nactivations, "
            + std::string{work ? "MiB, " : ""}
            + "versions: of the rank or stage with most; staleness: of the stalest "
              "update (mean of its stage)";
  result += timing_legend(shared, runs) + ending_legend(runs) + exchange_legend(runs)
            + expert_legend(runs);
  if (samples > 0)
    result += "\nloss: mean over the last " + std::to_string(samples) + " samples";
  if (shared.loss_floor)
    result += "; no model of this data can stay below "
              + text(*shared.loss_floor, "%.4f") + " nats";
  return result + "\n";
}

} // namespace troupe
