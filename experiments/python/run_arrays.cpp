// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/python/run_arrays.hpp"

#include "experiments/report/seconds.hpp"

namespace troupe::python {

std::vector<timeline_row> timeline_rows(const run_account& run) {
  std::vector<timeline_row> result;
  for (std::size_t rank = 0; rank < run.result.actions.size(); ++rank)
    for (const auto& ran : run.result.actions[rank])
      result.push_back({.rank = static_cast<std::int32_t>(rank),
                        .kind = {letter_of(ran.action.op)},
                        .stage = ran.action.stage,
                        .direction = ran.action.direction,
                        .microbatch = ran.action.microbatch,
                        .version = ran.version,
                        .versions_alive = ran.versions_alive,
                        .part = ran.part,
                        .start = seconds_of(ran.start),
                        .end = seconds_of(ran.end),
                        .expert = ran.expert});
  return result;
}

std::vector<memory_row> memory_rows(const run_account& run) {
  std::vector<memory_row> result;
  for (std::size_t rank = 0; rank < run.result.peak_bytes.size(); ++rank) {
    const auto& parts = run.result.peak_parts[rank];
    const auto of = [&](memory_use use) {
      return parts[static_cast<std::size_t>(use)];
    };
    result.push_back({.rank = static_cast<std::int32_t>(rank),
                      .peak = run.result.peak_bytes[rank],
                      .parameters = of(memory_use::parameters),
                      .gradients = of(memory_use::gradients),
                      .optimizer = of(memory_use::optimizer),
                      .activations = of(memory_use::activations),
                      .passing = of(memory_use::passing),
                      .checkpoint = of(memory_use::checkpoint)});
  }
  return result;
}

std::vector<stage_row> stage_rows(const run_account& run) {
  const auto& sums = run.result.sums;
  std::vector<stage_row> result;
  for (std::size_t stage = 0; stage < sums.weight_versions.size(); ++stage)
    result.push_back({.stage = static_cast<std::int32_t>(stage),
                      .versions = sums.weight_versions[stage],
                      .staleness_max = sums.max_staleness[stage],
                      .staleness_mean = sums.mean_staleness[stage]});
  return result;
}

} // namespace troupe::python
