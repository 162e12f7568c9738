// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/coordinator.hpp"

#include "actors/mail/failure.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"

#include <caf/exit_reason.hpp>

#include <algorithm>
#include <utility>

namespace troupe {

std::string text_of(const caf::error& reason) {
  if (!reason || reason == caf::exit_reason::user_shutdown)
    return {};
  if (reason.category() == caf::atom("system")
      && reason.code() == static_cast<std::uint8_t>(caf::sec::runtime_error)
      && reason.context().match_elements<std::string>())
    return reason.context().get_as<std::string>(0);
  return "an actor ended: " + caf::to_string(reason);
}

namespace {

using self_pointer = coordinator_actor::stateful_pointer<coordinator_state>;

template <class Handles, class Message>
void send_to_all(self_pointer self, const Handles& receivers, const Message& message) {
  for (const auto& receiver : receivers)
    send_from(self, *self->state.shared.meter, receiver, Message{message});
}

int ranks(self_pointer self) {
  return static_cast<int>(self->state.handles->schedulers.size());
}

/// Adds a rank to the ranks that have answered; true if all have answered now.
bool completes(self_pointer self, std::set<int>& to, int rank) {
  return to.insert(rank).second && static_cast<int>(to.size()) == ranks(self);
}

/// Adds the first answer of a stage; returns the number of answers.
template <class Message>
std::size_t add(self_pointer self, answers<Message>& to, Message part) {
  const auto stage = self->state.handles->index(part.where);
  to.try_emplace(stage, std::move(part));
  return to.size();
}

template <class Message>
std::vector<Message> take_all(answers<Message>& from) {
  std::vector<Message> result;
  for (auto& [stage, part] : std::exchange(from, {}))
    result.push_back(std::move(part));
  return result;
}

// Stages come to evaluations in order: of snapshots before the newest complete one no
// part is missing.
void gather(self_pointer self, mail::snapshot part) {
  auto& state = self->state;
  const int batches = part.batches;
  const auto& plan = *state.shared.plan;
  if (batches <= state.last_snapshot || !in_snapshot(plan, part.where)
      || static_cast<int>(add(self, state.snapshots[batches], std::move(part)))
           < plan.dims.stages * plan.mesh[axis::tensor] * data_in_snapshot(plan))
    return;
  state.last_snapshot = batches;
  state.status->post_snapshot(take_all(state.snapshots.extract(batches).mapped()));
}

void gather(self_pointer self, mail::collected part) {
  auto& state = self->state;
  if (!state.collects
      || add(self, state.collected, std::move(part)) < state.handles->stages.size())
    return;
  state.collects = false;
  state.status->post_collected(take_all(state.collected));
}

void gather(self_pointer self, const mail::copied& part) {
  auto& state = self->state;
  if (part.batches == state.copies
      && state.copied.insert(state.handles->index(part.where)).second
      && state.copied.size() == state.handles->stages.size())
    state.status->post_copied();
}

// A copy from no stage of the run, or for another checkpoint, does not count. From
// another node copies may arrive before `copied` does.
void gather(self_pointer self, mail::saved part) {
  auto& state = self->state;
  gather(self, mail::copied{part.batches, part.where});
  if (part.batches != state.saves)
    return;
  if (add(self, state.saved, std::move(part)) == state.handles->stages.size())
    state.status->post_saved(take_all(state.saved));
}

// Each stage that was asked answers once.
void gather(self_pointer self, mail::kept_state part) {
  auto& state = self->state;
  if (part.copies.batches == state.fetched_batches
      && state.unanswered.erase(state.handles->index(part.copies.where)) > 0)
    state.status->post_kept_state(std::move(part));
}

/// Handles copies, and keeps no handle of the buffers in the mailbox: the thread that
/// waits for copies may release the buffers at once.
template <class Message>
auto take_in(self_pointer self, message_meter& meter) {
  return on_owned_message<Message>(
    self, meter, [self, message_counter = &meter](Message message) {
      if (message_counter->observer())
        message_counter->observer()(self->name(), envelope_text(message));
      gather(self, std::move(message));
    });
}

/// Makes ranks that update together end after the same update, the first that none of
/// them has finished.
void gather(self_pointer self, const mail::started& part) {
  auto& state = self->state;
  const bool first = state.started.try_emplace(part.rank, part.count).second;
  if (!first || static_cast<int>(state.started.size()) < ranks(self))
    return;
  const auto& plan = *state.shared.plan;
  std::map<int, int> most; // by group
  for (const auto& [rank, count] : state.started)
    most[stops_with(plan, rank)] = std::max(most[stops_with(plan, rank)], count);
  for (const auto& [rank, count] : state.started)
    send_from(self, *state.shared.meter,
              state.handles->schedulers[static_cast<std::size_t>(rank)],
              mail::stop_after{most[stops_with(plan, rank)]});
}

void gather(self_pointer self, const mail::at_checkpoint& part) {
  auto& state = self->state;
  if (part.batches <= state.last_checkpoint
      || !completes(self, state.at_checkpoint, part.rank))
    return;
  state.at_checkpoint.clear();
  state.last_checkpoint = part.batches;
  state.status->post_checkpoint(part.batches);
}

/// For relays, which receive no such question, the ledgers answer.
void request_explanations(self_pointer self) {
  for (const auto& ledger : self->state.handles->ledgers)
    if (ledger)
      self->state.status->post_explanation({ledger->name(), "", "", ledger->holds()});
  self->state.handles->for_each_asked([self](const auto& actor) {
    send_from(self, *self->state.shared.meter, actor, mail::explain{});
  });
}

/// The name of the place of a user's actor; empty if `address` is no relay's.
std::string name_of_relay_at(const actor_handles& handles,
                             const caf::actor_addr& address) {
  for (std::size_t i = 0; i < handles.relays.size(); ++i)
    if (const auto& relay = handles.relays[i]; relay && relay.address() == address)
      return handles.ledgers[i]->name();
  return {};
}

/// The failure that an actor's end means for the run; empty: none. A user's actor may
/// not quit before the exit message, as messages would be lost.
std::string failure_by_end_of(const actor_handles& handles, const caf::down_msg& down) {
  const auto why = text_of(down.reason);
  const auto relay = name_of_relay_at(handles, down.source);
  if (relay.empty() || down.reason == caf::exit_reason::user_shutdown)
    return why;
  if (why.empty())
    return relay + " quit before the run ended";
  return relay
         + (down.reason == caf::sec::runtime_error && down.reason.context().empty()
              ? " threw an exception that CAF printed on standard error, as only a "
                "troupe::relay reports exceptions to the run"
              : ": " + why);
}

} // namespace

coordinator_actor::behavior_type coordinator(self_pointer self, run_context shared,
                                             std::shared_ptr<run_status> status) {
  auto& state = self->state;
  state.shared = std::move(shared);
  state.status = std::move(status);
  // no actor monitors this one
  self->set_exception_handler([self](std::exception_ptr& thrown) {
    auto why = failure_of(self->state.name, thrown);
    self->state.status->post_failure(text_of(why));
    return why;
  });
  self->set_down_handler([self](caf::down_msg& down) {
    if (auto why = failure_by_end_of(*self->state.handles, down); !why.empty())
      self->state.status->post_failure(std::move(why));
  });
  auto& meter = *state.shared.meter;
  return {
    on_message(self, meter,
               [self](const mail::finished& f) {
                 if (completes(self, self->state.finished, f.rank))
                   self->state.status->post_finished();
               }),
    on_message(self, meter,
               [self](const mail::held& h) {
                 if (h.round == self->state.round
                     && completes(self, self->state.held, h.rank))
                   self->state.status->post_held();
               }),
    take_in<mail::snapshot>(self, meter),
    take_in<mail::collected>(self, meter),
    take_in<mail::saved>(self, meter),
    take_in<mail::kept_state>(self, meter),
    on_message(self, meter, [self](const mail::copied& c) { gather(self, c); }),
    on_message(self, meter,
               [self](const mail::save& s) {
                 self->state.copies = s.batches;
                 self->state.copied.clear();
                 if (s.hand_over) {
                   self->state.saves = s.batches;
                   self->state.saved.clear();
                 }
                 send_to_all(self, self->state.handles->stages, s);
               }),
    on_message(self, meter,
               [self](const mail::fetch_kept_state& r) {
                 self->state.fetched_batches = r.batches;
                 self->state.unanswered.insert(self->state.handles->index(r.where));
                 send_from(self, *self->state.shared.meter,
                           self->state.handles->stage(r.where), r);
               }),
    on_message(
      self, meter,
      [self](const mail::waiting_for& w) { self->state.status->post_explanation(w); }),
    on_message(self, meter,
               [self](const mail::wiring& w) {
                 self->state.handles = w.handles;
                 w.handles->for_each(
                   [self](const auto& actor) { self->monitor(actor); });
               }),
    on_message(self, meter,
               [self](const mail::hold&) {
                 self->state.held.clear();
                 send_to_all(self, self->state.handles->schedulers,
                             mail::hold{++self->state.round});
               }),
    on_message(self, meter,
               [self](const mail::resume& p) {
                 send_to_all(self, self->state.handles->schedulers, p);
               }),
    on_message(self, meter,
               [self](const mail::stop& s) {
                 send_to_all(self, self->state.handles->schedulers, s);
               }),
    on_message(self, meter, [self](const mail::started& b) { gather(self, b); }),
    on_message(self, meter, [self](const mail::at_checkpoint& c) { gather(self, c); }),
    on_message(self, meter,
               [self](const mail::resume_from_checkpoint& g) {
                 send_to_all(self, self->state.handles->schedulers, g);
               }),
    on_message(
      self, meter,
      [self](const mail::failed& f) { self->state.status->post_failure(f.why); }),
    on_message(self, meter,
               [self](const mail::collect& c) {
                 self->state.collects = true;
                 self->state.collected.clear();
                 send_to_all(self, self->state.handles->stages, c);
               }),
    on_message(self, meter,
               [self](const mail::explain&) { request_explanations(self); }),
  };
}

} // namespace troupe
