// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/coordinator.hpp"

#include "actors/mail/failure.hpp"

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
void send_to_all(self_pointer self, const Handles& all, const Message& what) {
  for (const auto& one : all)
    tell(self, *self->state.shared.meter, one, Message{what});
}

int ranks(self_pointer self) {
  return static_cast<int>(self->state.everybody->schedulers.size());
}

/// Adds a rank to the ranks that have answered; true if all have answered now.
bool completes(self_pointer self, std::set<int>& to, int rank) {
  return to.insert(rank).second && static_cast<int>(to.size()) == ranks(self);
}

/// Adds the first answer of a stage; returns the number of answers.
template <class Message>
std::size_t add(self_pointer self, answers<Message>& to, Message part) {
  const auto stage = self->state.everybody->index(part.where);
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
  if (batches <= state.last_snapshot || !plan.in_snapshot(part.where)
      || static_cast<int>(add(self, state.snapshots[batches], std::move(part)))
           < plan.dims.stages * plan.tensor * plan.data_in_snapshot())
    return;
  state.last_snapshot = batches;
  state.board->post_snapshot(take_all(state.snapshots.extract(batches).mapped()));
}

void gather(self_pointer self, mail::collected part) {
  auto& state = self->state;
  if (!state.collects
      || add(self, state.collected, std::move(part)) < state.everybody->stages.size())
    return;
  state.collects = false;
  state.board->post_collected(take_all(state.collected));
}

void gather(self_pointer self, const mail::copied& part) {
  auto& state = self->state;
  if (part.batches == state.copies
      && state.copied.insert(state.everybody->index(part.where)).second
      && state.copied.size() == state.everybody->stages.size())
    state.board->post_copied();
}

// A copy from no stage of the run, or for another checkpoint, does not count. From
// another node copies may arrive before `copied` does.
void gather(self_pointer self, mail::saved part) {
  auto& state = self->state;
  gather(self, mail::copied{part.batches, part.where});
  if (part.batches != state.saves)
    return;
  if (add(self, state.saved, std::move(part)) == state.everybody->stages.size())
    state.board->post_saved(take_all(state.saved));
}

// Each stage that was asked answers once.
void gather(self_pointer self, mail::recalled part) {
  auto& state = self->state;
  if (part.copies.batches == state.recalls
      && state.recalled.erase(state.everybody->index(part.copies.where)) > 0)
    state.board->post_recalled(std::move(part));
}

/// Handles copies, and keeps no handle of the buffers in the mailbox: the thread that
/// waits for copies may release the buffers at once.
template <class Message>
auto take_in(self_pointer self, mail_meter& meter) {
  return take<Message>(self, meter, [self, told = &meter](Message what) {
    if (told->told())
      told->told()(self->name(), envelope_text(what));
    gather(self, std::move(what));
  });
}

/// Makes ranks that update together end after the same update, the first that none of
/// them has finished.
void gather(self_pointer self, const mail::begun& part) {
  auto& state = self->state;
  const bool first = state.begun.try_emplace(part.rank, part.count).second;
  if (!first || static_cast<int>(state.begun.size()) < ranks(self))
    return;
  const auto& plan = *state.shared.plan;
  std::map<int, int> most; // by group
  for (const auto& [rank, count] : state.begun)
    most[plan.stops_with(rank)] = std::max(most[plan.stops_with(rank)], count);
  for (const auto& [rank, count] : state.begun)
    tell(self, *state.shared.meter,
         state.everybody->schedulers[static_cast<std::size_t>(rank)],
         mail::stop_after{most[plan.stops_with(rank)]});
}

void gather(self_pointer self, const mail::at_checkpoint& part) {
  auto& state = self->state;
  if (part.batches <= state.last_checkpoint
      || !completes(self, state.at_checkpoint, part.rank))
    return;
  state.at_checkpoint.clear();
  state.last_checkpoint = part.batches;
  state.board->post_checkpoint(part.batches);
}

/// For relays, which receive no such question, the ledgers answer.
void ask_everybody(self_pointer self) {
  for (const auto& ledger : self->state.everybody->ledgers)
    if (ledger)
      self->state.board->post_explanation({ledger->name(), "", "", ledger->holds()});
  self->state.everybody->for_each_asked([self](const auto& one) {
    tell(self, *self->state.shared.meter, one, mail::explain{});
  });
}

/// The name of the place of a user's actor; empty if `address` is no relay's.
std::string place_of_relay(const directory& all, const caf::actor_addr& who) {
  for (std::size_t i = 0; i < all.relays.size(); ++i)
    if (const auto& one = all.relays[i]; one && one.address() == who)
      return all.ledgers[i]->name();
  return {};
}

/// The failure that an actor's end means for the run; empty: none. A user's actor may
/// not quit before the exit message, as messages would be lost.
std::string failure_by_end_of(const directory& all, const caf::down_msg& down) {
  const auto why = text_of(down.reason);
  const auto relay = place_of_relay(all, down.source);
  if (relay.empty() || down.reason == caf::exit_reason::user_shutdown)
    return why;
  if (why.empty())
    return relay + " quit before the run ended";
  return relay
         + (down.reason == caf::sec::runtime_error && down.reason.context().empty()
              ? " threw an exception, which CAF printed on the standard error stream: "
                "a "
                "troupe::relay's exception would be named here"
              : ": " + why);
}

} // namespace

coordinator_actor::behavior_type coordinator(self_pointer self, props shared,
                                             std::shared_ptr<notice_board> board) {
  auto& state = self->state;
  state.shared = std::move(shared);
  state.board = std::move(board);
  // no actor monitors this one
  self->set_exception_handler([self](std::exception_ptr& thrown) {
    auto why = failure_of(self->state.name, thrown);
    self->state.board->post_failure(text_of(why));
    return why;
  });
  self->set_down_handler([self](caf::down_msg& down) {
    if (auto why = failure_by_end_of(*self->state.everybody, down); !why.empty())
      self->state.board->post_failure(std::move(why));
  });
  auto& meter = *state.shared.meter;
  return {
    hear(self, meter,
         [self](const mail::finished& f) {
           if (completes(self, self->state.finished, f.rank))
             self->state.board->post_finished();
         }),
    hear(self, meter,
         [self](const mail::held& h) {
           if (h.round == self->state.round
               && completes(self, self->state.held, h.rank))
             self->state.board->post_held();
         }),
    take_in<mail::snapshot>(self, meter),
    take_in<mail::collected>(self, meter),
    take_in<mail::saved>(self, meter),
    take_in<mail::recalled>(self, meter),
    hear(self, meter, [self](const mail::copied& c) { gather(self, c); }),
    hear(self, meter,
         [self](const mail::save& s) {
           self->state.copies = s.batches;
           self->state.copied.clear();
           if (s.hand_over) {
             self->state.saves = s.batches;
             self->state.saved.clear();
           }
           send_to_all(self, self->state.everybody->stages, s);
         }),
    hear(self, meter,
         [self](const mail::recall& r) {
           self->state.recalls = r.batches;
           self->state.recalled.insert(self->state.everybody->index(r.where));
           tell(self, *self->state.shared.meter, self->state.everybody->stage(r.where),
                r);
         }),
    hear(
      self, meter,
      [self](const mail::waiting_for& w) { self->state.board->post_explanation(w); }),
    hear(self, meter,
         [self](const mail::wiring& w) {
           self->state.everybody = w.everybody;
           w.everybody->for_each([self](const auto& one) { self->monitor(one); });
         }),
    hear(self, meter,
         [self](const mail::hold&) {
           self->state.held.clear();
           send_to_all(self, self->state.everybody->schedulers,
                       mail::hold{++self->state.round});
         }),
    hear(self, meter,
         [self](const mail::proceed& p) {
           send_to_all(self, self->state.everybody->schedulers, p);
         }),
    hear(self, meter,
         [self](const mail::stop& s) {
           send_to_all(self, self->state.everybody->schedulers, s);
         }),
    hear(self, meter, [self](const mail::begun& b) { gather(self, b); }),
    hear(self, meter, [self](const mail::at_checkpoint& c) { gather(self, c); }),
    hear(self, meter,
         [self](const mail::go_on& g) {
           send_to_all(self, self->state.everybody->schedulers, g);
         }),
    hear(self, meter,
         [self](const mail::failed& f) { self->state.board->post_failure(f.why); }),
    hear(self, meter,
         [self](const mail::collect& c) {
           self->state.collects = true;
           self->state.collected.clear();
           send_to_all(self, self->state.everybody->stages, c);
         }),
    hear(self, meter, [self](const mail::explain&) { ask_everybody(self); }),
  };
}

} // namespace troupe
