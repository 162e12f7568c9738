// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/other_programs.hpp"

#include "experiments/report/seconds.hpp"
#include "experiments/report/table_text.hpp"
#include "plan/replica_rules.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <thread>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

/// Whether times without a processor are known: the clock is real, the run has times,
/// and the rank is on a CPU.
bool is_known(const run_plan& plan, const run_result& result, int rank) {
  return plan.machine.clock == clock_kind::real && plan.work
         && result.outcome != ending::failed && std::ssize(result.sums.wall_time) > rank
         && !plan.machine.processor_of(rank).is_gpu();
}

/// Everything that may have had the processors of a run.
std::string takers_of(const run_plan& plan, const run_result& result) {
  if (result.processes > 1)
    return "other programs, and nodes on the same machine,";
  const int threads =
              std::min(plan.machine.threads, device_count(plan, all_ranks(plan))),
            cores = static_cast<int>(std::thread::hardware_concurrency());
  return threads > cores && cores > 0
           ? "other programs, and the run's " + std::to_string(threads) + " threads on "
               + std::to_string(cores) + " cores,"
           : "other programs";
}

} // namespace

std::optional<double> other_programs_share(const run_plan& plan,
                                           const run_result& result) {
  const auto& sums = result.sums;
  double taken = 0, wall = 0;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    if (is_known(plan, result, rank)) {
      const auto index = static_cast<std::size_t>(rank);
      taken += static_cast<double>(sums.off_processor_time[index]);
      wall += static_cast<double>(sums.wall_time[index]);
    }
  return wall > 0 ? std::optional{taken / wall} : std::nullopt;
}

std::string other_programs_warning::sentence() const {
  return takers + " took " + text(100 * share, "%.1f%%")
         + " of the actions' wall time: " + consequence;
}

std::optional<other_programs_warning>
warning_of(const run_plan& plan, const run_result& result, bool modelled) {
  const auto share = other_programs_share(plan, result);
  if (!share || *share <= usual_share)
    return {};
  return other_programs_warning{
    *share, takers_of(plan, result),
    modelled
      ? "rates are those of a busy machine; makespan, idle and bubble leave this "
        "time out"
      : "times and rates are those of a busy machine"};
}

json other_programs_json(const run_plan& plan, const run_result& result,
                         bool modelled) {
  const auto share = other_programs_share(plan, result);
  if (!share)
    return nullptr;
  auto seconds = json::array();
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    seconds.push_back(is_known(plan, result, rank)
                        ? json(seconds_of(result.sums.off_processor_time[index]))
                        : json(nullptr));
  }
  const auto warning = warning_of(plan, result, modelled);
  return {{"share", *share},
          {"seconds", std::move(seconds)},
          {"warning", warning ? json(warning->sentence()) : json(nullptr)}};
}

} // namespace troupe
