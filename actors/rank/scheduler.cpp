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
void send(self_pointer self, const Handle& to, Message&& what) {
  tell(self, *self->state.shared.meter, to, std::forward<Message>(what));
}

void send_samples(self_pointer self) {
  auto& state = self->state;
  if (!state.samples.empty())
    send(self, state.everybody->recorder,
         mail::samples{*state.rank, std::exchange(state.samples, {})});
}

/// Keeps a measured action for the recorder, as long as the plan keeps actions of this
/// rank. In real time a watched run sends each action at once; virtual time is too fast
/// for that.
void keep(self_pointer self, const measured_action& what) {
  auto& state = self->state;
  const auto& plan = *state.shared.plan;
  if (!plan.keep_record && !plan.model_times && !plan.watched
      && state.noted > plan.keep_first)
    return;
  ++state.noted;
  state.samples.push_back(what);
  if ((plan.watched && plan.clock == clock_kind::real)
      || state.samples.size() >= samples_at_once)
    send_samples(self);
}

void note(self_pointer self, const measured_action& what) {
  if (!self->state.rank)
    return;
  auto& sums = self->state.sums;
  auto& held = self->state.held;
  sums.add(what);
  held.add(what);
  sums.held = held.count();
  sums.peak_held = held.peak();
  keep(self, what);
}

/// Records the time that an action took before a pause, if any.
void note(self_pointer self, const mail::paused& p) {
  if (p.what.end > p.what.start)
    note(self, p.what);
  else if (self->state.shared.plan->model_times)
    keep(self, p.what);
}

void send_all(self_pointer self) {
  send_samples(self);
  send(self, self->state.everybody->recorder,
       mail::sums{*self->state.rank, self->state.sums});
}

void grant(self_pointer self) {
  auto& state = self->state;
  while (const auto next = state.core->grant())
    state.everybody->to(next->who, [&](const auto& performer) {
      send(self, performer, mail::run{next->what, next->turn, next->pair});
    });
  if (!state.said_finished && state.core->finished()) {
    state.said_finished = true;
    send_all(self);
    send(self, state.everybody->coordinator, mail::finished{*state.rank});
  }
  const auto batches = state.core->at_checkpoint();
  if (batches && std::exchange(state.said_checkpoint, batches) != batches)
    send(self, state.everybody->coordinator,
         mail::at_checkpoint{*state.rank, *batches});
}

/// A scheduler with a choice decides at the end of an instant of virtual time, with
/// everything that has arrived in that instant. Any other scheduler grants at once.
void consider(self_pointer self) {
  auto& state = self->state;
  auto* const clock = state.shared.clock;
  if (clock == nullptr || !state.core->has_choice())
    return grant(self);
  if (std::exchange(state.asked_to_decide, true))
    return;
  clock->at_end_of_instant(
    [meter = state.shared.meter, me = scheduler_actor{self}] {
      post(*meter, me, mail::decide{});
    },
    end_of_instant::decisions);
}

/// An action has ended: handles this `done`, and each earlier `done` whose turn has
/// come.
void end(self_pointer self, const mail::done& d) {
  auto& core = *self->state.core;
  auto& early = self->state.early;
  const auto end_one = [&](const mail::done& one) {
    note(self, one.what);
    core.hear(one);
  };
  if (!core.is_in_turn(d))
    return early.push_back(d);
  end_one(d);
  const auto next = [&] {
    return std::ranges::find_if(
      early, [&](const mail::done& other) { return core.is_in_turn(other); });
  };
  for (auto one = next(); one != early.end(); one = next()) {
    end_one(*one);
    early.erase(one);
  }
}

void say_if_at_rest(self_pointer self) {
  auto& state = self->state;
  if (!state.core->at_rest())
    return;
  send_all(self);
  send(self, state.everybody->coordinator, mail::held{*state.rank, state.round});
}

} // namespace

scheduler_actor::behavior_type scheduler(self_pointer self, props shared,
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
    hear(self, meter,
         [self](const mail::arrived& a) {
           self->state.core->hear(a);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::done& d) {
           end(self, d);
           say_if_at_rest(self);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::paused& p) {
           note(self, p);
           self->state.core->hear(p);
           say_if_at_rest(self);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::decide&) {
           self->state.asked_to_decide = false;
           grant(self);
         }),
    hear(self, meter,
         [self](const mail::hold& h) {
           self->state.round = h.round;
           self->state.core->hold();
           say_if_at_rest(self);
         }),
    hear(self, meter,
         [self](const mail::proceed& p) {
           self->state.core->hear(p);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::go_on& g) {
           self->state.core->hear(g);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::stop&) {
           send(self, self->state.everybody->coordinator, self->state.core->freeze());
         }),
    hear(self, meter,
         [self](const mail::stop_after& s) {
           self->state.core->hear(s);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::explain&) {
           send(self, self->state.everybody->coordinator, self->state.core->explain());
         }),
    hear(self, meter,
         [self](const mail::wiring& w) {
           self->state.everybody = w.everybody;
           consider(self);
         }),
  };
}

} // namespace troupe
