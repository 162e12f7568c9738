// SPDX-License-Identifier: BSD-3-Clause
// ZB-Auto: a greedy search over programs with split backwards. The search knows the
// costs of F, I and W, and the number of microbatches that a rank may hold. A rank
// prefers input gradients, which other ranks wait for, then forwards; weight gradients
// fill the rest. Several preferences are tried: how far forwards run ahead, whether
// forwards go before weight gradients, and whether a rank waits a little for an
// arrival. The catalog's other schedules of this placement that hold no more are tried
// too. The fastest program is taken.
// Qi et al., "Zero Bubble Pipeline Parallelism", 2024, section 3.
//
//   2 stages, 3 microbatches, of which a rank holds 2; F=2, I=3, W=1
//   rank 0  F0 =  F1 =  .  .  .  I0 =  =  W0 F2 =  I1 =  =  W1 .  I2 =  =  W2
//   rank 1  .  .  F0 =  I0 =  =  F1 =  I1 =  =  W0 F2 =  I2 =  =  W1 W2

#include "schedules/catalog/catalog.hpp"
#include "schedules/greedy_search.hpp"
#include "schedules/program.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe {

namespace {

// Without a limit, a rank holds as many microbatches as the first rank of 1F1B.
std::vector<search_rules> tried(search_rules usual, const shape& dims) {
  if (usual.most_held == 0)
    usual.most_held = dims.stages;
  std::vector<search_rules> result;
  for (const int ahead : {0, 1, 2})
    for (const bool forward_first : {true, false})
      for (const bool waits : {true, false})
        for (const bool alternates : {true, false}) {
          auto& rules = result.emplace_back(usual);
          rules.ahead = ahead;
          rules.forward_first = forward_first;
          rules.waits = waits;
          rules.alternates = alternates;
        }
  return result;
}

/// The program of a batch for one rank, with each backward in two halves and the update
/// as the last action.
std::vector<action> split_batch(const schedule& sch, const shape& dims, int rank) {
  std::vector<action> result;
  for (auto a : generate(sch, dims, rank)) {
    if (a.op == op::backward) {
      a.op = op::input_gradient;
      result.push_back(a);
      a.op = op::weight_gradient;
    }
    if (a.op != op::update)
      result.push_back(a);
  }
  result.push_back({op::update, 0, rank, dims.microbatches - 1});
  return result;
}

int peak_held(const std::vector<action>& program) {
  int now = 0, most = 0;
  for (const auto& a : program) {
    now += (a.op == op::forward) - (a.op == op::weight_gradient);
    most = std::max(most, now);
  }
  return most;
}

/// The catalog's flush schedules with one stage per rank that hold at most `most_held`
/// microbatches.
std::vector<batch_programs> known(int most_held, const shape& dims) {
  const shape batch{dims.stages, dims.microbatches};
  std::vector<batch_programs> result;
  for (const auto& entry : catalog()) {
    if (entry.name == "zb-auto")
      continue; // else an endless recursion
    const auto sch = *find_schedule(entry.name);
    if (sch.asynchronous() || sch.where.name != placement::linear().name
        || !validation_error(sch, batch).empty())
      continue;
    batch_programs programs;
    for (int rank = 0; rank < dims.stages; ++rank)
      programs.push_back(split_batch(sch, batch, rank));
    if (std::ranges::all_of(programs, [&](const auto& program) {
          return peak_held(program) <= most_held;
        }))
      result.push_back(std::move(programs));
  }
  return result;
}

} // namespace

schedule zb_auto(std::vector<split_costs> costs, int most_held, std::int64_t latency) {
  search_rules usual{.splits = true,
                     .forward = {},
                     .backward = {},
                     .weight = {},
                     .update = {},
                     .latency = latency,
                     .most_held = most_held};
  for (const auto& [f, i, w, u] : costs) {
    usual.forward.push_back(std::max<std::int64_t>(f, 1));
    usual.backward.push_back(std::max<std::int64_t>(i, 1));
    usual.weight.push_back(std::max<std::int64_t>(w, 1));
    usual.update.push_back(u);
  }
  return {.name = "zb-auto",
          .order = best_of([usual](const shape& dims) { return tried(usual, dims); },
                           placement::linear(),
                           [most_held](const shape& dims) {
                             return known(most_held > 0 ? most_held : dims.stages,
                                          dims);
                           }),
          .most_held = most_held,
          .refuses = [stages = costs.size()](const shape& dims) -> std::string {
            constexpr std::int64_t most = 1 << 18; // a search of six seconds
            if (std::int64_t{dims.stages} * dims.microbatches > most)
              return "zb-auto searches at most 262,144 stages times microbatches of a "
                     "data replica: give fewer --stages or --microbatches";
            if (stages == 1 || static_cast<int>(stages) == dims.stages)
              return {};
            return "zb-auto has costs of " + std::to_string(stages)
                   + " stages, and the run has " + std::to_string(dims.stages)
                   + ": give f=, i= and w= a single value, or a value for each stage";
          }};
}

} // namespace troupe
