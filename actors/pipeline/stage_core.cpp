// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage_core.hpp"

#include "actors/pipeline/loss_report.hpp"
#include "actors/pipeline/tensor_headers.hpp"
#include "plan/replica_rules.hpp"
#include "plan/stage_layers.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

namespace troupe {

stage_core::stage_core(std::shared_ptr<const run_plan> plan, position where,
                       stage_port& port, std::shared_ptr<stage_work> work,
                       std::shared_ptr<stage_meetings> meetings)
  : plan_(std::move(plan)),
    where_(where),
    name_(plan_->name_of(where)),
    port_(&port),
    ledger_(plan_->sch, plan_->dims, where.hosted()),
    work_(std::move(work)),
    meetings_(std::move(meetings)),
    updates_(*plan_, where, port, *work_, *meetings_, ledger_) {
  meetings_->yield([&port](requested_sum s) { port.sum(std::move(s)); });
}

void stage_core::arrive_if_possible(int microbatch) {
  if (!work_->has_inputs(microbatch))
    return;
  if (ledger_.can_forward(microbatch))
    port_->arrived(action_of(op::forward, microbatch));
  else
    unversioned_.push_back(microbatch);
}

void stage_core::receive(const activation& input) {
  work_->put_input(input.header.microbatch, input.payload);
  if (input.pending_write)
    input_writers_[{op::forward, input.header.microbatch}] = input.pending_write;
  arrive_if_possible(input.header.microbatch);
}

void stage_core::receive(const labels& input) {
  work_->put_labels(input.header.microbatch, input.payload);
  arrive_if_possible(input.header.microbatch);
}

void stage_core::receive(const gradient& input) {
  work_->put_gradient(input.header.microbatch, input.payload);
  if (input.pending_write)
    input_writers_[{op::backward, input.header.microbatch}] = input.pending_write;
  port_->arrived(action_of(op::backward, input.header.microbatch));
}

void stage_core::receive(mail::meeting_message message) {
  if (const auto* last = std::get_if<mail::updated>(&message.body))
    return end_update(*last);
  port_->send_all(meetings_->receive(std::move(message)));
  for (auto& pass : passes_)
    pass.run.poll();
}

void stage_core::run(const action& a, std::int64_t turn,
                     const std::optional<action>& pair) {
  if (a.op == op::update)
    return updates_.begin(a);
  auto* pass = find(a);
  if (pass == nullptr) {
    updates_.copy_if_due();
    if (a.op == op::forward && is_first())
      port_->demand();
    pass = &begin(a, turn, pair);
  }
  pass->run.resume(turn);
}

/// Returns the entry of a pass that is under way; null if `a` is not under way.
stage_core::granted_pass* stage_core::find(const action& a) {
  const auto pass = std::ranges::find_if(passes_, [&](const granted_pass& p) {
    return p.run.under_way() && p.run.current_action() == a;
  });
  return pass != passes_.end() ? &*pass : nullptr;
}

bool stage_core::runs_a_pass() const {
  return std::ranges::any_of(passes_,
                             [](const granted_pass& p) { return p.run.under_way(); });
}

/// Returns a free entry of `passes_`, and adds one if all entries are under way. A
/// new entry refers to itself by index, since growing `passes_` moves entries.
stage_core::granted_pass& stage_core::free_entry() {
  auto entry = std::ranges::find_if(
    passes_, [](const granted_pass& p) { return !p.run.under_way(); });
  if (entry == passes_.end()) {
    const auto i = passes_.size();
    passes_.push_back(
      {{*port_, meetings_->list(), [this, i] { return passes_[i].facts; }},
       no_turn,
       {}});
    entry = std::prev(passes_.end());
  }
  return *entry;
}

/// The share of a stage's forward that the recompute action runs again, 0 to 1. The
/// backward that follows recomputes the rest.
double stage_core::recomputed_share(int stage) const {
  if (!plan_->recomputes() || plan_->recomputed_units == 0)
    return 1;
  const auto [entry, is_new] = recomputed_shares_.try_emplace(stage, 1.0);
  if (is_new)
    entry->second = part_in_last_segment(stage);
  return entry->second;
}

double stage_core::part_in_last_segment(int stage) const {
  if (plan_->work)
    return slice_of(*plan_, {where_.data, where_.direction, stage, where_.tensor})
      .recomputed_share();
  return 1
         - static_cast<double>(segments_of(*plan_, stage).back())
             / plan_->work.simulated().buckets;
}

/// The cost of an action relative to a whole action of its kind with the largest
/// microbatch.
double stage_core::size_of(const action& a) const {
  return (a.op == op::recompute ? recomputed_share(a.stage) : 1)
         * (a.op == op::update ? 1 : plan_->part_of_largest(where_.data, a.microbatch));
}

/// Floating-point operations of one sample's forward in another stage of the rank:
/// operations of this tensor shard, without experts.
double stage_core::operations_of_sample(int stage, std::int64_t length) const {
  if (!plan_->work)
    return 0;
  const auto [entry, is_new] = operations_of_sample_.try_emplace({stage, length}, 0.0);
  if (is_new)
    entry->second =
      slices_of(*plan_, {where_.data, where_.direction, stage, where_.tensor})
        .at_length(length)
        .operations();
  return entry->second;
}

/// Floating-point operations of an action, also for an action of another stage of the
/// rank.
double stage_core::operations_of(const action& a) const {
  const auto n = plan_->microbatch_of_all(where_.data, a.microbatch);
  const auto shape = plan_->batches().shape_of(n);
  const double forward = a.stage == where_.stage
                           ? work_->operations(shape)
                           : operations_of_sample(a.stage, shape.length)
                               * static_cast<double>(shape.samples);
  return forward * (a.op == op::backward ? 2 : 1)
         * (a.op == op::recompute ? recomputed_share(a.stage) : 1)
         / meetings_->stage_share();
}

/// The cost of an action where time is modelled: operations, size, and the sizes of
/// recomputations and of the pair's second action. In real time `operations` covers
/// only the action itself.
charge stage_core::cost_of(const action& a, const std::optional<action>& pair) const {
  charge result{.operations = operations_of(a), .size = size_of(a), .also = {}};
  const auto add_segments = [&](const action& backward) {
    const double share = 1 - recomputed_share(backward.stage);
    if (share == 0 || !goes_back(backward.op))
      return;
    result.also.push_back(
      {static_cast<int>(op::recompute), backward.stage, share * size_of(backward)});
    result.operations += share
                         * operations_of({op::forward, backward.direction,
                                          backward.stage, backward.microbatch});
  };
  if (pair) {
    result.also.push_back({static_cast<int>(pair->op), pair->stage, size_of(*pair)});
    if (plan_->machine.clock == clock_kind::virtual_time)
      result.operations += operations_of(*pair);
    add_segments(*pair);
  }
  add_segments(a);
  return result;
}

/// Values of one sample that a stage receives from the previous stage; 0 in a
/// simulation.
std::int64_t stage_core::values_of_sample(int stage, int microbatch) {
  if (!plan_->work)
    return 0;
  const auto length = plan_->length_of(where_.data, microbatch);
  const auto [entry, is_new] = values_of_sample_.try_emplace({stage, length}, 0);
  if (is_new)
    entry->second = values_below(
      *plan_, {where_.data, where_.direction, stage, where_.tensor}, length);
  return entry->second;
}

stage_core::granted_pass& stage_core::begin(const action& a, std::int64_t turn,
                                            const std::optional<action>& pair) {
  const bool sums = adds_gradient(a.op);
  const auto in_sum =
    sums ? updates_.begin_backward() : stage_updates::position_in_sum{};
  const bool tells = reports_immediately(*plan_) && in_sum.last;
  const int version = a.op == op::forward ? ledger_.begin_forward(a.microbatch)
                                          : ledger_.version_for_backward(a.microbatch);
  if (sums)
    ledger_.end_backward(a.microbatch); // before the next grant reads the ledger
  auto pass = work_->pieces(
    {a, plan_->batches().range_of(plan_->microbatch_of_all(where_.data, a.microbatch)),
     version, in_sum.first, in_sum.last, tells || meetings_->by_layer(a.op),
     plan_->length_of(where_.data, a.microbatch)});
  if (tells)
    for (auto& piece : pass)
      piece.completes = work_->buckets_of(piece.completes);
  action_callbacks callbacks;
  if (tells) {
    // Each piece copies the callback. The copies share the notifier and the list.
    auto notify =
      std::make_shared<const stage_port::bucket_notifier>(port_->notifier());
    auto gradients = std::make_shared<const std::vector<buffer>>(work_->gradients());
    callbacks.bucket = [notify = std::move(notify), gradients = std::move(gradients),
                        direction = where_.direction](int bucket) {
      (*notify)({direction, bucket, (*gradients)[static_cast<std::size_t>(bucket)]});
    };
  }
  if (work_->leaves_at_launch(a.op))
    callbacks.launched = port_->launch_notifier(a);
  auto woven = meetings_->weave(a, version, in_sum.first, std::move(pass));
  if (auto writer =
        input_writers_.extract({goes_back(a.op) ? op::backward : a.op, a.microbatch}))
    woven.inputs.push_back(std::move(writer.mapped()));
  if (auto reader = work_->reader_before(a.op, a.microbatch))
    woven.inputs.push_back(std::move(reader));
  auto& entry = free_entry();
  entry.facts = {
    .action = a, .version = version, .versions_alive = ledger_.versions_alive()};
  entry.turn = turn;
  entry.run.begin(a, cost_of(a, pair), std::move(woven), std::move(callbacks));
  return entry;
}

void stage_core::launched(const mail::launched& l) {
  send(find(l.action)->facts, work_->take_message(l.action.op, l.action.microbatch),
       l.end);
}

void stage_core::ended(const mail::ended& e) {
  const auto& a = e.action;
  if (a.op == op::update) {
    updates_.end_copy();
    return report_if_updated();
  }
  auto& pass = *find(a);
  if (!pass.run.ended(e.start, e.end))
    return;
  auto measured = pass.facts;
  if (a.op == op::forward)
    end_forward(pass, e.end);
  else if (a.op != op::recompute)
    end_backward(pass);
  measured.start = e.start;
  measured.end = e.end;
  if (runs_a_pass()) // passes that began before the copy was due
    updates_.copy_if_due();
  port_->done(measured);
}

/// Sends a pass's output to the neighbour that needs the output, if any: activations to
/// the next stage, gradients to the previous one.
/// \param writer the GPU work that writes the payload; null if the payload is complete
void stage_core::send(const measured_action& pass, buffer payload,
                      std::shared_ptr<gpu_completion> writer) {
  const auto& a = pass.action;
  const bool up = a.op == op::forward;
  if (up ? is_last() : is_first() || !goes_back(a.op))
    return;
  const auto header =
    header_of(*plan_, where_, a.stage + (up ? 1 : -1), a.microbatch,
              values_of_sample(up ? a.stage + 1 : a.stage, a.microbatch), pass.version);
  if (up)
    port_->send_on({header, std::move(payload), std::move(writer)});
  else
    port_->send_back({header, std::move(payload), std::move(writer)});
}

void stage_core::end_forward(const granted_pass& pass, nanoseconds now) {
  const auto& a = pass.facts.action;
  forward_report reports{{}, meetings_->take_loads()};
  auto payload = work_->take_message(a.op, a.microbatch);
  work_->end_forward(a.microbatch);
  const auto loss = work_->loss_of(a.microbatch);
  if (loss && plan_->reports_loss(where_))
    reports.loss =
      report_of(*plan_, where_, a.microbatch, *loss, pass.facts.version, now);
  updates_.end_forward(a.microbatch, std::move(reports));
  if (!work_->leaves_at_launch(a.op))
    send(pass.facts, std::move(payload));
}

// The microbatch's buffers are freed before the gradient is sent, as the neighbour's
// next pass may need a buffer of the shared pool.
void stage_core::end_backward(const granted_pass& pass) {
  const auto& a = pass.facts.action;
  auto payload = work_->take_message(a.op, a.microbatch);
  work_->end_backward(a.op, a.microbatch);
  if (!work_->leaves_at_launch(a.op))
    send(pass.facts, std::move(payload));
  if (a.op != op::input_gradient)
    updates_.end_backward(a.microbatch);
}

// Forwards that waited for the new version are announced as arrived before the
// scheduler is notified of the update's end.
void stage_core::end_update(const mail::updated& last) {
  updates_.end(last);
  std::erase_if(unversioned_, [&](int microbatch) {
    if (!ledger_.can_forward(microbatch))
      return false;
    port_->arrived(action_of(op::forward, microbatch));
    return true;
  });
  report_if_updated();
}

void stage_core::report_if_updated() {
  if (updates_.take_over())
    port_->done(updates_.measured());
}

mail::waiting_for stage_core::explain() const {
  const auto neighbour = [&](int stage) {
    return plan_->name_of({where_.data, where_.direction, stage, where_.tensor});
  };
  const auto first = std::ranges::min_element(passes_, {}, [](const granted_pass& p) {
    return std::pair{!p.run.under_way(), p.turn};
  });
  if (first != passes_.end())
    if (const auto waits = first->run.explain(name_))
      return *waits;
  if (updates_.copies())
    return {name_, "its device to copy its parameters", ""};
  if (updates_.under_way())
    return {name_, "its update", plan_->optimizer_of(where_)};
  if (ledger_.held() > 0 && !is_last())
    return {name_,
            "the gradient of microbatch " + std::to_string(ledger_.oldest_held()),
            neighbour(where_.stage + 1)};
  if (updates_.has_all_gradients())
    return {name_, "", ""};
  if (ledger_.held() > 0)
    return {name_, "its scheduler to start its backward", ""};
  return {name_, "an activation",
          is_first() ? plan_->source_of(where_) : neighbour(where_.stage - 1)};
}

} // namespace troupe
