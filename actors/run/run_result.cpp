// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/run_result.hpp"

#include "actors/run/equipment.hpp"
#include "actors/run/recorder.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

/// The tensor memory that the ranks here took, in bytes.
std::vector<mail::node_report::rank_bytes> memory_of(const equipment& equipped) {
  std::vector<mail::node_report::rank_bytes> result;
  for (std::size_t r = 0; r < equipped.ranks().size(); ++r) {
    const auto& rank = equipped.ranks()[r];
    if (!rank)
      continue;
    const auto& memory = rank->memory;
    auto& one = result.emplace_back(mail::node_report::rank_bytes{
      static_cast<int>(r), memory.all().peak(), {}, memory.all().reserved()});
    for (int use = 0; use < memory_uses; ++use)
      one.parts.push_back(memory.of(static_cast<memory_use>(use)).peak());
  }
  return result;
}

void add_memory(const std::vector<mail::node_report::rank_bytes>& of,
                run_result& result) {
  for (const auto& one : of) {
    const auto rank = static_cast<std::size_t>(one.rank);
    if (one.rank < 0 || rank >= result.peak_bytes.size()
        || one.parts.size() != memory_uses)
      continue; // of no rank of this run
    result.peak_bytes[rank] = one.peak;
    result.reserved_bytes[rank] = one.reserved;
    for (std::size_t use = 0; use < memory_uses; ++use)
      result.peak_parts[rank][use] = one.parts[use];
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

run_result measured(const run_plan& plan, run_log& log, const equipment& equipped,
                    const mail_meter& meter, bool to_end,
                    const std::vector<mail::node_report>& elsewhere) {
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
  result.missing_losses = plan.work ? log.losses.missing(to_end) : 0;
  result.samples = result.loss_samples.empty() ? 0 : result.loss_samples.back();
  if (!plan.updates_are_by(update_by::all)) {
    result.exchange = measures_of(equipped.shared(), plan.dims.stages);
    if (plan.keep_record)
      result.accesses = history_of(equipped.shared());
  }
  if (plan.work) {
    const auto ranks = static_cast<std::size_t>(plan.ranks());
    result.peak_bytes.resize(ranks);
    result.peak_parts.resize(ranks);
    result.reserved_bytes.resize(ranks);
  }
  add(plan, report_of(equipped, meter), result);
  for (const auto& part : elsewhere)
    add(plan, part, result);
  return result;
}

mail::node_report report_of(const equipment& equipped, const mail_meter& meter) {
  mail::node_report result{.ranks = memory_of(equipped),
                           .envelopes = meter.total(),
                           .most_envelopes = meter.most_at_once(),
                           .late_allocations = equipped.late_allocations(),
                           .sums = meter.sums(),
                           .sums_at_work = meter.sums_at_work()};
  for (int kind = 0; kind < traffic_kinds; ++kind)
    result.moved.push_back(meter.bytes(static_cast<traffic>(kind)));
  return result;
}

} // namespace troupe
