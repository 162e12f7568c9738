// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/record.hpp"

#include "messaging/bounded_list.hpp"

#include <algorithm>

namespace troupe {

timeline timeline_of(const record& ran) {
  timeline result(ran.size());
  for (std::size_t rank = 0; rank < ran.size(); ++rank)
    for (const auto& s : ran[rank])
      result[rank].push_back({s.action, s.start, s.end});
  return result;
}

void expert_loads::add(int batch, std::size_t layer,
                       const std::vector<std::int64_t>& rows, std::int64_t dropped) {
  while (batch / every >= static_cast<int>(most_entries))
    halve();
  auto& steps = by_layer[layer];
  const auto number = static_cast<std::size_t>(batch / every);
  steps.resize(std::max(steps.size(), number + 1));
  steps[number].add({rows, dropped});
}

void expert_loads::step::add(const step& addend) {
  rows.resize(std::max(rows.size(), addend.rows.size()));
  for (std::size_t e = 0; e < addend.rows.size(); ++e)
    rows[e] += addend.rows[e];
  dropped += addend.dropped;
}

/// Merges each two entries to one, and doubles the steps that an entry sums.
void expert_loads::halve() {
  every *= 2;
  for (auto& [layer, steps] : by_layer) {
    std::vector<step> sums((steps.size() + 1) / 2);
    for (std::size_t s = 0; s < steps.size(); ++s)
      sums[s / 2].add(steps[s]);
    steps = std::move(sums);
  }
}

std::vector<nanoseconds> measures::idle() const {
  std::vector<nanoseconds> result;
  for (const auto b : busy)
    result.push_back(makespan - b);
  return result;
}

double measures::bubble() const {
  double sum = 0;
  for (const auto i : idle())
    sum += static_cast<double>(i) / static_cast<double>(makespan);
  return makespan > 0 ? sum / static_cast<double>(busy.size()) : 0;
}

double measures::bubble_ideal() const {
  double sum = 0;
  for (const auto b : busy)
    sum += b > 0 ? static_cast<double>(makespan - b) / static_cast<double>(b) : 0;
  return busy.empty() ? 0 : sum / static_cast<double>(busy.size());
}

void rank_sums::add(const measured_action& s) {
  busy += s.end - s.start;
  off_processor_time += s.off_processor_time;
  if (first_start < 0)
    first_start = s.start;
  last_end = std::max(last_end, s.end);
  auto stage = std::ranges::find(stages, s.action.stage, &stage_sums::stage);
  if (stage == stages.end())
    stage = stages.insert(stage, {.stage = s.action.stage});
  stage->versions = std::max(stage->versions, s.versions_alive);
  if (s.part)
    return;
  if (s.action.op == op::update) {
    stage->stalest = std::max(stage->stalest, s.stalest);
    stage->staleness += s.staleness;
    stage->gradients += s.gradients;
  }
}

measures measures_of(const std::vector<rank_sums>& ranks, int stages) {
  measures result;
  const auto count = static_cast<std::size_t>(stages);
  result.weight_versions.assign(count, 1);
  result.max_staleness.assign(count, 0);
  std::vector<std::int64_t> staleness(count), gradients(count);
  for (const auto& r : ranks) {
    result.makespan = std::max(result.makespan, r.last_end);
    result.busy.push_back(r.busy);
    result.wall_time.push_back(r.busy);
    result.off_processor_time.push_back(r.off_processor_time);
    result.span_idle.push_back(r.last_end - std::max<nanoseconds>(r.first_start, 0)
                               - r.busy);
    result.peak_activations.push_back(r.peak_held);
    for (const auto& s : r.stages) {
      const auto i = static_cast<std::size_t>(s.stage);
      result.weight_versions[i] = std::max(result.weight_versions[i], s.versions);
      result.max_staleness[i] = std::max(result.max_staleness[i], s.stalest);
      staleness[i] += s.staleness;
      gradients[i] += s.gradients;
    }
  }
  for (std::size_t s = 0; s < count; ++s)
    result.mean_staleness.push_back(gradients[s] > 0
                                      ? static_cast<double>(staleness[s])
                                          / static_cast<double>(gradients[s])
                                      : 0);
  return result;
}

} // namespace troupe
