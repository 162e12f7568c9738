// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/run_result.hpp"

#include "actors/run/recorder.hpp"
#include "actors/run/run_resources.hpp"
#include "plan/replica_rules.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

/// The tensor memory that the ranks here took, in bytes.
std::vector<mail::node_report::rank_bytes> memory_of(const run_resources& resources) {
  std::vector<mail::node_report::rank_bytes> result;
  for (std::size_t r = 0; r < resources.ranks().size(); ++r) {
    const auto& rank = resources.ranks()[r];
    if (!rank)
      continue;
    const auto& memory = rank->memory;
    auto& entry = result.emplace_back(mail::node_report::rank_bytes{
      static_cast<int>(r), memory.total().peak(), {}, memory.total().reserved()});
    for (int use = 0; use < memory_uses; ++use)
      entry.parts.push_back(memory.account(static_cast<memory_use>(use)).peak());
  }
  return result;
}

void add_memory(const std::vector<mail::node_report::rank_bytes>& reported,
                run_result& result) {
  for (const auto& entry : reported) {
    const auto rank = static_cast<std::size_t>(entry.rank);
    if (entry.rank < 0 || rank >= result.peak_bytes.size()
        || entry.parts.size() != memory_uses)
      continue; // of no rank of this run
    result.peak_bytes[rank] = entry.peak;
    result.reserved_bytes[rank] = entry.reserved;
    for (std::size_t use = 0; use < memory_uses; ++use)
      result.peak_parts[rank][use] = entry.parts[use];
  }
}

/// Adds the measurements of another process. That process's messages were under way at
/// the same time as others.
void add(const run_plan& plan, const mail::node_report& from, run_result& to) {
  if (plan.work)
    add_memory(from.ranks, to);
  to.late_allocations += from.late_allocations;
  to.envelopes += from.envelopes;
  to.most_envelopes += from.most_envelopes;
  to.summed += from.sums;
  to.summed_at_work += from.sums_at_work;
  for (std::size_t kind = 0;
       kind < std::min<std::size_t>(from.moved.size(), traffic_kinds); ++kind)
    to.bytes_moved[kind] += from.moved[kind];
}

} // namespace

run_result measured(const run_plan& plan, run_log& log, const run_resources& resources,
                    const message_meter& meter, bool to_end,
                    const std::vector<mail::node_report>& remote_reports) {
  run_result result;
  result.sums = measures_of(log.sums, plan.dims.stages);
  if (const auto modelled = log.modelled(to_end)) {
    result.sums.makespan = modelled->makespan;
    result.sums.busy = modelled->busy;
    result.sums.span_idle = modelled->span_idle;
  }
  result.loads = std::move(log.loads);
  result.actions = std::move(log.actions);
  result.actions_cut = log.cut;
  result.loss = log.losses.losses();
  result.loss_samples = log.losses.samples();
  result.loss_times = log.losses.ends();
  result.loss_every = log.losses.every();
  if (log.updates.every() == result.loss_every) {
    result.gradient_norms = log.updates.norms();
    result.learning_rates = log.updates.rates();
  }
  result.missing_losses = plan.work ? log.losses.missing(to_end) : 0;
  result.samples = result.loss_samples.empty() ? 0 : result.loss_samples.back();
  if (!updates_are_by(plan, update_by::all_replicas)) {
    result.exchange = measures_of(resources.shared(), plan.dims.stages);
    if (plan.keep.record)
      result.accesses = history_of(resources.shared());
  }
  if (plan.work) {
    const auto ranks = static_cast<std::size_t>(plan.ranks());
    result.peak_bytes.resize(ranks);
    result.peak_parts.resize(ranks);
    result.reserved_bytes.resize(ranks);
  }
  add(plan, report_of(resources, meter), result);
  for (const auto& part : remote_reports)
    add(plan, part, result);
  result.processes += static_cast<int>(remote_reports.size());
  return result;
}

mail::node_report report_of(const run_resources& resources,
                            const message_meter& meter) {
  mail::node_report result{.ranks = memory_of(resources),
                           .envelopes = meter.total(),
                           .most_envelopes = meter.most_at_once(),
                           .late_allocations = resources.late_allocations(),
                           .sums = meter.sums(),
                           .sums_at_work = meter.sums_at_work()};
  for (int kind = 0; kind < traffic_kinds; ++kind)
    result.moved.push_back(meter.bytes(static_cast<traffic>(kind)));
  return result;
}

} // namespace troupe
