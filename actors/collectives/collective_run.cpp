// SPDX-License-Identifier: BSD-3-Clause
#include "actors/collectives/collective_run.hpp"

#include "actors/collectives/collective_member.hpp"
#include "actors/mail/failure.hpp"
#include "actors/run/stall.hpp"
#include "plan/costs.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/logger.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

struct system_config : caf::actor_system_config {
  system_config() { set("scheduler.policy", caf::atom("testing")); }
};

/// A rank's arrays, and buffers for as many messages as the rank may have under way.
struct rank_memory {
  rank_memory(const collective_part& part, std::vector<float> array)
    : source(std::move(array)),
      second(part.order.in_place ? 0 : static_cast<std::size_t>(part.target.values())),
      in_place(part.order.in_place),
      bound(payloads_of(part)),
      payloads("messages of rank " + std::to_string(part.rank), bound.buffers,
               bound.values, account) {
    // nop
  }

  std::vector<float>& target() { return in_place ? source : second; }

  std::vector<float> source, second;
  bool in_place;
  payload_bound bound;
  memory_account account;
  pool payloads;
};

/// The results and answers that the listener has received.
struct collective_log {
  collective_result result;
  int done = 0;
  std::string failure;
  std::vector<mail::waiting_for> answers;
};

struct listener_state {
  std::string name = "listener";
  std::shared_ptr<collective_log> log;
};

collective_listener_actor::behavior_type
listener(collective_listener_actor::stateful_pointer<listener_state> self,
         message_meter* meter, std::shared_ptr<collective_log> log) {
  self->state.log = std::move(log);
  report_failures(self);
  self->set_down_handler([self](caf::down_msg& down) {
    auto& failure = self->state.log->failure;
    if (failure.empty())
      failure = text_of(down.reason);
  });
  return {
    on_message(self, *meter,
               [self](const mail::member_done& d) {
                 auto& results = *self->state.log;
                 results.result.sent.add(d.sent);
                 results.result.makespan = std::max(results.result.makespan, d.when);
                 ++results.done;
               }),
    on_message(
      self, *meter,
      [self](const mail::waiting_for& w) { self->state.log->answers.push_back(w); }),
    on_message(self, *meter,
               [self](const collective_peers& peers) {
                 for (const auto& member : *peers.members)
                   self->monitor(member);
               }),
  };
}

class local_collective_run {
public:
  explicit local_collective_run(collective_trial trial)
    : trial_(std::move(trial)), interconnect_(clock_, trial_.machines, trial_.ranks) {
    for (std::size_t r = 0; r < trial_.arrays.size(); ++r)
      memory_.push_back(std::make_unique<rank_memory>(part_of(static_cast<int>(r)),
                                                      std::move(trial_.arrays[r])));
  }

  collective_result run() {
    {
      system_config config;
      caf::actor_system system{config};
      auto& mailboxes =
        dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
      const auto peers = spawn(system);
      caf::logger::set_current_actor_system(
        nullptr); // CAF's log would cost a tenth of an event's time
      send_external(meter_, peers.listener, peers);
      for (const auto& member : *peers.members)
        send_external(meter_, member, peers);
      do
        mailboxes.run();
      while (log_->failure.empty() && clock_.step());
      if (log_->failure.empty() && log_->done < trial_.ranks)
        explain(peers, mailboxes);
      for (const auto& member : *peers.members)
        caf::anon_send_exit(member, caf::exit_reason::user_shutdown);
      caf::anon_send_exit(peers.listener, caf::exit_reason::user_shutdown);
      mailboxes.run();
      clock_.clear(); // after a failure messages and sums may be under way
      for (auto& adder : adders_)
        adder.stop();
      interconnect_.clear();
    } // all actors have ended
    if (!log_->failure.empty())
      throw std::runtime_error(log_->failure);
    for (auto& rank : memory_)
      log_->result.arrays.push_back(std::move(rank->target()));
    return std::move(log_->result);
  }

private:
  collective_part part_of(int rank) const {
    return even_part(trial_.order, rank, trial_.ranks, trial_.values, trial_.root);
  }

  collective_memory memory_of(int rank) {
    if (memory_.empty())
      return {};
    auto& m = *memory_[static_cast<std::size_t>(rank)];
    return {m.source.data(), m.target().data(), &m.payloads};
  }

  /// A device that computes the sums of one rank; null if the rank computes sums
  /// itself.
  device* adder_of_one() {
    if (trial_.sum_rate == 0)
      return nullptr;
    return &adders_.emplace_back(clock_, costs_of_sums(trial_.sum_rate));
  }

  collective_peers spawn(caf::actor_system& system) {
    std::vector<collective_member_actor> members;
    for (int r = 0; r < trial_.ranks; ++r)
      members.push_back(system.spawn(
        collective_member, run_context{nullptr, &meter_, &clock_, &interconnect_},
        part_of(r), memory_of(r), adder_of_one()));
    return {
      std::make_shared<const std::vector<collective_member_actor>>(std::move(members)),
      system.spawn(listener, &meter_, log_)};
  }

  void explain(const collective_peers& peers,
               caf::scheduler::test_coordinator& mailboxes) {
    for (const auto& member : *peers.members)
      send_external(meter_, member, mail::explain{});
    mailboxes.run();
    log_->failure = "the collective has stalled: nothing is under way; "
                    + describe_stall(log_->answers);
  }

  collective_trial trial_;
  message_meter meter_;
  std::vector<std::unique_ptr<rank_memory>> memory_; // one per rank, or empty
  // declared after memory_: events may hold buffers
  virtual_clock clock_;
  std::deque<virtual_device> adders_; // one per rank, or empty
  interconnect interconnect_;
  std::shared_ptr<collective_log> log_ = std::make_shared<collective_log>();
};

} // namespace

collective_result perform(collective_trial trial) {
  return local_collective_run{std::move(trial)}.run();
}

} // namespace troupe
