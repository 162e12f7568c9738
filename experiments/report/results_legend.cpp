// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/results_legend.hpp"

#include "actors/run/timing.hpp"
#include "experiments/report/expert_report.hpp"
#include "experiments/report/other_programs.hpp"
#include "experiments/report/table_text.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace troupe {

namespace {

/// The meaning of the words in the column of timing, for the words that occur.
std::string timing_legend(const setup& shared, const std::vector<run_account>& runs) {
  std::set<timing_kind> shown_kinds;
  for (const auto& run : runs)
    if (run.outcome() != ending::failed)
      shown_kinds.insert(run.timing());
  const auto& plan = shared.runs.front().plan;
  const std::string scarce = plan.machine.threads < plan.ranks() ? "threads" : "cores";
  std::string result;
  if (shown_kinds.contains(timing_kind::modelled))
    result += "\nmodelled: makespan, idle and bubble are computed from the processor "
              "time of each action, as if each rank\n"
              "had a device of its own, because "
              + (has_thread_a_rank(plan) ? "nodes have clocks of their own"
                                         : "there are fewer " + scarce + " than ranks")
              + "; samples/s is measured";
  if (shown_kinds.contains(timing_kind::shared))
    result += "\nshared: times are measured while ranks share fewer " + scarce
              + " than there are ranks, and would\n"
                "differ with a device for each rank";
  if (shown_kinds.contains(timing_kind::virtual_time))
    result += "\nvirtual: all times and rates are those of the virtual clock, at "
              + shared.rates;
  return result;
}

/// The meaning of the column of other programs, and a warning for the runs that need
/// one; empty if no share is known.
std::string other_programs_legend(const std::vector<run_account>& runs) {
  bool is_known = false;
  // by takers and consequence, which are usually the same for all runs
  std::map<std::pair<std::string, std::string>, std::string> warned_runs;
  for (const auto& run : runs) {
    const auto& plan = run.request->plan;
    is_known = is_known || other_programs_share(plan, run.result);
    if (const auto warning = warning_of(plan, run.result, run.modelled)) {
      auto& names = warned_runs[{warning->takers, warning->consequence}];
      names += (names.empty() ? "" : ", ") + run.request->text;
    }
  }
  std::string result = is_known
                         ? "\nother programs: share of the actions' wall time in "
                           "which their threads had no processor"
                         : "";
  for (const auto& [warning, names] : warned_runs)
    result += "\nwarning: " + warning.first
              + " took more than 10% of the actions' wall time of " + names + ":\n"
              + warning.second;
  return result;
}

/// One line with a text for each run that has one, joined by semicolons.
std::string each(const std::vector<run_account>& runs,
                 const std::function<std::string(const run_account&)>& describe) {
  std::string result;
  for (const auto& run : runs)
    if (const auto said = describe(run); !said.empty())
      result += (result.empty() ? "" : "; ") + run.request->text + ": " + said;
  return result;
}

std::string exchange_legend(const std::vector<run_account>& runs) {
  const auto said = each(runs, [](const run_account& run) -> std::string {
    const auto& measures = run.result.exchange;
    if (measures.max.empty())
      return "";
    return largest(measures.max)
           + text(*std::ranges::max_element(measures.mean), " (%.2f)");
  });
  return said.empty() ? ""
                      : "\nupdates of other data replicas between a replica's read and "
                        "its own update, for the stalest update\n(mean of its stage): "
                          + said;
}

std::string expert_legend(const std::vector<run_account>& runs) {
  const auto said = each(runs, [](const run_account& run) -> std::string {
    return run.result.loads.by_layer.empty() ? "" : summary_of(run.result.loads);
  });
  return said.empty() ? ""
                      : "\nexperts: rows of the fullest expert / mean rows of an "
                        "expert in the layer, and dropped choices, in the\n"
                        "last tenth of the steps: "
                          + said;
}

std::string ending_legend(const std::vector<run_account>& runs) {
  const auto said = each(runs, [](const run_account& run) -> std::string {
    if (run.outcome() != ending::interrupted)
      return "";
    if (run.result.outcome == ending::finished)
      return "training complete, evaluation interrupted";
    const auto& plan = run.request->plan;
    return plan.work
             ? std::to_string(run.result.samples) + " of "
                 + std::to_string(plan.work->batch * plan.dims.steps) + " samples"
             : "part of its steps";
  });
  return said.empty() ? "" : "\ninterrupted: " + said;
}

/// The meaning of the columns that compare losses in time.
std::string reached_legend(const std::vector<run_account>& runs,
                           const shown_losses& losses) {
  if (runs.empty() || (!losses.shortest && !losses.target))
    return "";
  const auto window = std::to_string(window_of(runs.front()));
  const auto timing = runs.front().timing();
  const std::string clock = timing == timing_kind::virtual_time ? "the virtual clock"
                            : timing == timing_kind::modelled   ? "modelled times"
                                                                : "the wall clock";
  std::string result;
  if (losses.shortest)
    result += "\nloss at a time: after the shortest time of all schedules, by " + clock
              + "; mean over the last " + window + " samples";
  if (losses.target)
    result += "\nsamples and time to " + text(losses.target, "%.3f")
              + ": until the mean loss of the last " + window
              + " samples is at most that, by " + clock;
  return result;
}

} // namespace

std::string division_of(const run_plan& plan) {
  const int tensor = plan.mesh[axis::tensor], data = plan.mesh[axis::data],
            expert = plan.mesh[axis::expert];
  std::string result;
  if (tensor > 1)
    result += std::to_string(tensor) + " tensor shards"
              + (plan.sequence_parallel ? " by sequence, " : ", ");
  if (data > 1)
    result += std::to_string(data) + " data replicas by " + plan.exchange->name
              + (plan.exchange->compression == &fp32_codec()
                   ? ""
                   : " of " + std::string{plan.exchange->compression->name})
              + ", ";
  if (expert > 1)
    result += "experts spread over " + std::to_string(expert) + " replicas, ";
  return result;
}

std::string description_of(const setup& shared) {
  const auto& plan = shared.runs.front().plan;
  const int stages = plan.dims.stages, steps = last_step(plan).count;
  return shared.model.model + " of " + std::to_string(plan.work->whole.values())
         + " parameters on " + shared.data + "; " + std::to_string(stages)
         + (stages == 1 ? " stage, " : " stages, ") + division_of(plan)
         + std::to_string(plan.batches().microbatches) + " microbatches, "
         + std::to_string(steps) + (steps == 1 ? " step of " : " steps of ")
         + std::to_string(plan.work->batch) + " samples";
}

std::string results_legend(const setup& shared, const std::vector<run_account>& runs,
                           const shown_losses& losses) {
  const auto samples = losses.samples;
  const bool trains(shared.runs.front().plan.work);
  auto result = "\nidle: mean over ranks of makespan - busy\n"
                "bubble: mean over ranks of idle / makespan\n"
                "activations, "
                + std::string{trains ? "MiB, " : ""}
                + "versions: of the rank or stage with most\n"
                  "staleness: of the stalest update (mean of the update's stage)";
  result += timing_legend(shared, runs) + other_programs_legend(runs)
            + ending_legend(runs) + exchange_legend(runs) + expert_legend(runs);
  if (!shared.start_description.empty())
    result += "\n" + shared.start_description;
  if (shared.evaluates_training_data)
    result += "\nevaluated: on data that the training reads too";
  if (samples > 0)
    result += "\nloss: mean over the last " + std::to_string(samples) + " samples";
  if (shared.loss_floor)
    result += (samples > 0 ? "; " : "\n")
              + std::string{"no model of this data can reach a loss below "}
              + text(*shared.loss_floor, "%.4f") + " nats";
  return result + reached_legend(runs, losses) + "\n";
}

} // namespace troupe
