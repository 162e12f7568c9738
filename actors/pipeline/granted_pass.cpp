// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/granted_pass.hpp"

#include "actors/pipeline/loss_report.hpp"
#include "actors/pipeline/tensor_headers.hpp"
#include "plan/replica_rules.hpp"

#include <utility>

namespace troupe {

granted_pass::granted_pass(stage_context& stage)
  : stage_(stage), run_(stage.port, stage.meetings->list(), [this] { return facts_; }) {
  // nop
}

void granted_pass::begin(const action& a, std::int64_t turn,
                         const std::optional<action>& pair,
                         std::shared_ptr<gpu_completion> input_writer) {
  const auto& plan = *stage_.plan;
  const int data = stage_.where.data;
  auto& ledger = stage_.ledger;
  auto& meetings = *stage_.meetings;
  auto& passes = *stage_.work.passes;
  const bool sums = adds_gradient(a.op);
  const auto in_sum =
    sums ? stage_.updates.begin_backward() : stage_updates::position_in_sum{};
  const bool reports_buckets = reports_immediately(plan) && in_sum.last;
  const int version = a.op == op::forward ? ledger.begin_forward(a.microbatch)
                                          : ledger.version_for_backward(a.microbatch);
  if (sums)
    ledger.end_backward(a.microbatch); // before the next grant reads the ledger
  auto pieces = passes.pieces(
    {a, plan.batches().range_of(plan.microbatch_of_all(data, a.microbatch)), version,
     in_sum.first, in_sum.last, reports_buckets || meetings.by_layer(a.op),
     plan.length_of(data, a.microbatch)});
  if (reports_buckets)
    for (auto& piece : pieces)
      piece.completes = stage_.work.gradients.buckets_of(piece.completes);
  auto woven = meetings.weave(a, version, in_sum.first, std::move(pieces));
  if (input_writer)
    woven.inputs.push_back(std::move(input_writer));
  if (auto reader = passes.reader_before(a.op, a.microbatch))
    woven.inputs.push_back(std::move(reader));
  facts_ = {.action = a, .version = version, .versions_alive = ledger.versions_alive()};
  turn_ = turn;
  run_.begin(a, stage_.costs.cost_of(a, pair), std::move(woven),
             callbacks_of(a, reports_buckets));
}

/// The functions that the device calls while the pass runs.
action_callbacks granted_pass::callbacks_of(const action& a, bool reports_buckets) {
  action_callbacks result;
  if (reports_buckets) {
    // Each piece copies the callback. The copies share the notifier and the list.
    auto notify =
      std::make_shared<const stage_port::bucket_notifier>(stage_.port.notifier());
    auto gradients =
      std::make_shared<const std::vector<buffer>>(stage_.work.gradients.buckets);
    result.bucket = [notify = std::move(notify), gradients = std::move(gradients),
                     direction = stage_.where.direction](int bucket) {
      (*notify)({direction, bucket, (*gradients)[static_cast<std::size_t>(bucket)]});
    };
  }
  if (stage_.work.passes->leaves_at_launch(a.op))
    result.launched = stage_.port.launch_notifier(a);
  return result;
}

void granted_pass::launched(std::shared_ptr<gpu_completion> end) {
  const auto& a = facts_.action;
  send(stage_.work.passes->take_message(a.op, a.microbatch), std::move(end));
}

std::optional<measured_action> granted_pass::ended(const mail::ended& e) {
  if (!run_.ended(e))
    return {};
  auto measured = facts_;
  if (e.action.op == op::forward)
    end_forward(e.end);
  else if (e.action.op != op::recompute)
    end_backward();
  mail::set_times(measured, e);
  return measured;
}

/// Sends the output to the neighbour that needs the output, if any: activations to the
/// next stage, gradients to the previous one.
/// \param writer the GPU work that writes the payload; null if the payload is complete
void granted_pass::send(buffer payload, std::shared_ptr<gpu_completion> writer) {
  const auto& a = facts_.action;
  const bool up = a.op == op::forward;
  if (up ? stage_.is_last() : stage_.is_first() || !goes_back(a.op))
    return;
  const auto header =
    header_of(*stage_.plan, stage_.where, a.stage + (up ? 1 : -1), a.microbatch,
              stage_.costs.values_below(up ? a.stage + 1 : a.stage, a.microbatch),
              facts_.version);
  if (up)
    stage_.port.send_on({header, std::move(payload), std::move(writer)});
  else
    stage_.port.send_back({header, std::move(payload), std::move(writer)});
}

void granted_pass::end_forward(nanoseconds now) {
  const auto& a = facts_.action;
  auto& passes = *stage_.work.passes;
  forward_report reports{{}, stage_.meetings->take_loads()};
  auto payload = passes.take_message(a.op, a.microbatch);
  const auto loss = passes.end_forward(a.microbatch);
  if (loss && stage_.plan->reports_loss(stage_.where))
    reports.loss =
      report_of(*stage_.plan, stage_.where, a.microbatch, *loss, facts_.version, now);
  stage_.updates.end_forward(a.microbatch, std::move(reports));
  if (!passes.leaves_at_launch(a.op))
    send(std::move(payload));
}

// The microbatch's buffers are freed before the gradient is sent, as the neighbour's
// next pass may need a buffer of the shared pool.
void granted_pass::end_backward() {
  const auto& a = facts_.action;
  auto& passes = *stage_.work.passes;
  auto payload = passes.take_message(a.op, a.microbatch);
  passes.end_backward(a.op, a.microbatch);
  if (!passes.leaves_at_launch(a.op))
    send(std::move(payload));
  if (a.op != op::input_gradient)
    stage_.updates.end_backward(a.microbatch);
}

} // namespace troupe
