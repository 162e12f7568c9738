// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/exchange_checks.hpp"

#include "plan/replica_rules.hpp"

#include <algorithm>
#include <vector>

namespace troupe {

namespace {

const std::vector<measured_action>& row_of(const run_plan& plan, const record& ran,
                                           int data, int stage) {
  return ran[static_cast<std::size_t>(plan.rank_of({data, 0, stage}))];
}

/// Returns the number of a stage's updates that each data replica recorded.
std::vector<int> updates_of(const run_plan& plan, const record& ran, int stage) {
  std::vector<int> result;
  for (int d = 0; d < plan.mesh[axis::data]; ++d)
    result.push_back(static_cast<int>(
      std::ranges::count_if(row_of(plan, ran, d, stage), [&](const measured_action& a) {
        return !a.part && a.action.op == op::update && a.action.stage == stage
               && a.action.direction == 0;
      })));
  return result;
}

std::string times(int applied, int answered) {
  return std::to_string(applied) + " were applied and " + std::to_string(answered)
         + " were answered";
}

/// Times of a stage's update in one data replica, in nanoseconds. `asked` is the
/// earliest time of the request: the end of the last gradient that the update covers.
struct update_times {
  nanoseconds asked;
  nanoseconds ended;
};

std::vector<update_times> update_times_of(const std::vector<measured_action>& row,
                                          int stage) {
  std::vector<update_times> result;
  std::vector<nanoseconds> gradients;
  std::size_t covered = 0;
  for (const auto& s : row) {
    if (s.part || s.action.stage != stage || s.action.direction != 0)
      continue;
    if (s.action.op == op::update) {
      covered += static_cast<std::size_t>(s.gradients);
      if (covered == 0 || covered > gradients.size())
        return {}; // the check of the record reports this error
      result.push_back({gradients[covered - 1], s.end});
    } else if (adds_gradient(s.action.op)) {
      gradients.push_back(s.end);
    }
  }
  return result;
}

} // namespace

std::string first_wrong_access(const run_plan& plan, const run_result& result) {
  const auto count = static_cast<std::size_t>(plan.mesh[axis::data]);
  for (std::size_t i = 0; i < result.accesses.size(); ++i) {
    const auto stage = static_cast<int>(i) % plan.dims.stages;
    const auto share = static_cast<int>(i) / plan.dims.stages;
    const auto name =
      "share " + std::to_string(share) + " of stage " + std::to_string(stage);
    std::vector<int> applied(count), answered(count);
    for (const auto& [data, update] : result.accesses[i]) {
      const auto d = static_cast<std::size_t>(data);
      applied[d] += update;
      answered[d] += !update;
      const int ahead = applied[d] - std::ranges::min(applied);
      if (!update && ahead > plan.exchange->staleness.value_or(ahead))
        return name + ": data replica " + std::to_string(data)
               + " got the answer to update " + std::to_string(applied[d] - 1)
               + " when ahead of the slowest data replica by " + std::to_string(ahead)
               + ", but the staleness bound is "
               + std::to_string(*plan.exchange->staleness);
    }
    if (!updates_are_by(plan, update_by::servers) && share > 0)
      continue; // without servers share 0 has the whole history
    const auto updates = updates_of(plan, result.actions, stage);
    for (std::size_t d = 0; d < count; ++d)
      if (applied[d] != updates[d] || answered[d] != updates[d])
        return name + ": data replica " + std::to_string(d) + " made "
               + std::to_string(updates[d]) + " updates, of which "
               + times(applied[d], answered[d]);
  }
  return {};
}

std::string first_early_answer(const run_plan& plan, const record& ran) {
  const auto bound = plan.exchange->staleness;
  for (int s = 0; s < plan.dims.stages && bound; ++s) {
    std::vector<std::vector<update_times>> replicas;
    for (int d = 0; d < plan.mesh[axis::data]; ++d)
      replicas.push_back(update_times_of(row_of(plan, ran, d, s), s));
    for (std::size_t d = 0; d < replicas.size(); ++d)
      for (auto n = static_cast<std::size_t>(*bound); n < replicas[d].size(); ++n)
        for (const auto& replica : replicas)
          if (const auto needed = n - static_cast<std::size_t>(*bound);
              needed < replica.size() && replicas[d][n].ended < replica[needed].asked)
            return "data replica " + std::to_string(d) + " got the answer to update "
                   + std::to_string(n) + " of stage " + std::to_string(s)
                   + " before a slower replica pushed update " + std::to_string(needed)
                   + ": the staleness bound is " + std::to_string(*bound);
  }
  return {};
}

} // namespace troupe
