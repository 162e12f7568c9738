// SPDX-License-Identifier: BSD-3-Clause
#include "actors/rank/scheduler.hpp"

#include "actors/mail/failure.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

using self_pointer = scheduler_actor::stateful_pointer<scheduler_state>;

constexpr std::size_t samples_at_once = 64;

template <class Handle, class Message>
void send(self_pointer self, const Handle& to, Message&& message) {
  send_from(self, *self->state.shared.meter, to, std::forward<Message>(message));
}

void send_samples(self_pointer self) {
  auto& state = self->state;
  if (!state.samples.empty())
    send(self, state.handles->recorder,
         mail::samples{*state.rank, std::exchange(state.samples, {})});
}

/// Keeps a measured action for the recorder, as long as the plan keeps actions of this
/// rank. In real time a watched run sends each action at once; virtual time is too fast
/// for that.
void keep(self_pointer self, const measured_action& measured) {
  auto& state = self->state;
  const auto& plan = *state.shared.plan;
  if (!plan.keep.record && !plan.observed.model_times && !plan.observed.watched
      && state.noted > plan.keep.first_actions)
    return;
  ++state.noted;
  state.samples.push_back(measured);
  if ((plan.observed.watched && plan.machine.clock == clock_kind::real)
      || state.samples.size() >= samples_at_once)
    send_samples(self);
}

void note(self_pointer self, const measured_action& measured) {
  if (!self->state.rank)
    return;
  auto& sums = self->state.sums;
  auto& held = self->state.held;
  sums.add(measured);
  held.add(measured);
  sums.held = held.count();
  sums.peak_held = held.peak();
  keep(self, measured);
}

/// Records the time that an action took before a pause, if any.
void note(self_pointer self, const mail::paused& p) {
  if (p.measured.end > p.measured.start)
    note(self, p.measured);
  else if (self->state.shared.plan->observed.model_times)
    keep(self, p.measured);
}

void send_all(self_pointer self) {
  send_samples(self);
  send(self, self->state.handles->recorder,
       mail::sums{*self->state.rank, self->state.sums});
}

void grant(self_pointer self) {
  auto& state = self->state;
  while (const auto next = state.core->grant())
    state.handles->to(next->receiver, [&](const auto& performer) {
      send(self, performer, mail::run{next->granted_action, next->turn, next->pair});
    });
  if (!state.reported_finished && state.core->finished()) {
    state.reported_finished = true;
    send_all(self);
    send(self, state.handles->coordinator, mail::finished{*state.rank});
  }
  const auto batches = state.core->at_checkpoint();
  if (batches && std::exchange(state.reported_checkpoint, batches) != batches)
    send(self, state.handles->coordinator, mail::at_checkpoint{*state.rank, *batches});
}

/// A scheduler with a choice decides at the end of an instant of virtual time, with
/// everything that has arrived in that instant. Any other scheduler grants at once.
void grant_or_wait(self_pointer self) {
  auto& state = self->state;
  auto* const clock = state.shared.clock;
  if (clock == nullptr || !state.core->has_choice())
    return grant(self);
  if (std::exchange(state.decision_pending, true))
    return;
  clock->at_end_of_instant(
    [meter = state.shared.meter, me = scheduler_actor{self}] {
      send_external(*meter, me, mail::decide{});
    },
    end_of_instant::decisions);
}

/// An action has ended: handles this `done`, and each earlier `done` whose turn has
/// come.
void end(self_pointer self, const mail::done& d) {
  auto& core = *self->state.core;
  auto& early = self->state.early;
  const auto end_one = [&](const mail::done& ended) {
    note(self, ended.measured);
    core.handle(ended);
  };
  if (!core.is_in_turn(d))
    return early.push_back(d);
  end_one(d);
  const auto next = [&] {
    return std::ranges::find_if(
      early, [&](const mail::done& candidate) { return core.is_in_turn(candidate); });
  };
  for (auto ready = next(); ready != early.end(); ready = next()) {
    end_one(*ready);
    early.erase(ready);
  }
}

void report_if_at_rest(self_pointer self) {
  auto& state = self->state;
  if (!state.core->at_rest())
    return;
  send_all(self);
  send(self, state.handles->coordinator, mail::held{*state.rank, state.round});
}

} // namespace

scheduler_actor::behavior_type scheduler(self_pointer self, run_context shared,
                                         std::optional<int> rank, int depth) {
  report_failures(self);
  auto& state = self->state;
  if (rank)
    state.name = "scheduler of rank " + std::to_string(*rank);
  state.core.emplace(shared.plan, rank, depth);
  state.shared = std::move(shared);
  state.rank = rank;
  auto& meter = *state.shared.meter;
  return {
    on_message(self, meter,
               [self](const mail::arrived& a) {
                 self->state.core->handle(a);
                 grant_or_wait(self);
               }),
    on_message(self, meter,
               [self](const mail::done& d) {
                 end(self, d);
                 report_if_at_rest(self);
                 grant_or_wait(self);
               }),
    on_message(self, meter,
               [self](const mail::paused& p) {
                 note(self, p);
                 self->state.core->handle(p);
                 report_if_at_rest(self);
                 grant_or_wait(self);
               }),
    on_message(self, meter,
               [self](const mail::decide&) {
                 self->state.decision_pending = false;
                 grant(self);
               }),
    on_message(self, meter,
               [self](const mail::hold& h) {
                 self->state.round = h.round;
                 self->state.core->hold();
                 report_if_at_rest(self);
               }),
    on_message(self, meter,
               [self](const mail::resume& p) {
                 self->state.core->handle(p);
                 grant_or_wait(self);
               }),
    on_message(self, meter,
               [self](const mail::resume_from_checkpoint& g) {
                 self->state.core->handle(g);
                 grant_or_wait(self);
               }),
    on_message(self, meter,
               [self](const mail::stop&) {
                 send(self, self->state.handles->coordinator,
                      self->state.core->freeze());
               }),
    on_message(self, meter,
               [self](const mail::stop_after& s) {
                 self->state.core->handle(s);
                 grant_or_wait(self);
               }),
    on_message(self, meter,
               [self](const mail::explain&) {
                 send(self, self->state.handles->coordinator,
                      self->state.core->explain());
               }),
    on_message(self, meter,
               [self](const mail::wiring& w) {
                 self->state.handles = w.handles;
                 grant_or_wait(self);
               }),
  };
}

} // namespace troupe
