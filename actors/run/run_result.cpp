#include "actors/run/run_result.hpp"

#include "actors/run/equipment.hpp"
#include "actors/run/recorder.hpp"

#include <utility>

namespace troupe {

namespace {

/// What the tensors of the ranks that are here took.
void add_memory(const run_plan& plan, const equipment& equipped, run_result& result) {
  result.late_allocations = equipped.late_allocations();
  if (!plan.work)
    return;
  for (const auto& rank : equipped.ranks()) {
    if (!rank)
      continue;
    result.peak_bytes.push_back(rank->memory.all().peak());
    auto& parts = result.peak_parts.emplace_back();
    for (int use = 0; use < memory_uses; ++use)
      parts[static_cast<std::size_t>(use)] =
        rank->memory.of(static_cast<memory_use>(use)).peak();
    result.reserved_bytes.push_back(rank->memory.all().reserved());
  }
}

} // namespace

run_result measured(const run_plan& plan, run_log& log, const equipment& equipped,
                    const mail_meter& meter, bool to_end) {
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
  result.loss_every = log.losses.every();
  result.samples = result.loss_samples.empty() ? 0 : result.loss_samples.back();
  if (!plan.updates_are_by(update_by::all)) {
    result.exchange = measures_of(equipped.shared(), plan.dims.stages);
    if (plan.keep_record)
      result.accesses = history_of(equipped.shared());
  }
  add_memory(plan, equipped, result);
  result.envelopes = meter.total();
  result.most_envelopes = meter.most_at_once();
  result.summed = meter.sums();
  result.summed_at_work = meter.sums_at_work();
  for (int kind = 0; kind < traffic_kinds; ++kind)
    result.bytes_moved[static_cast<std::size_t>(kind)] =
      meter.bytes(static_cast<traffic>(kind));
  return result;
}

} // namespace troupe
