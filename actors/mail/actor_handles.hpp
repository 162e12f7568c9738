// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/mail/relay_ledger.hpp"
#include "plan/stage_indexing.hpp"

#include <map>
#include <memory>
#include <utility>
#include <vector>

// Finds the handle of every actor of a run, by position or performer.

namespace troupe {

/// All actors of a run, in one list that all actors share. For an actor in another
/// process the list has the actor that forwards to that process. The list is complete
/// before the first actor receives the list. After that the list never changes, and is
/// thread-safe.
class actor_handles : public stage_indexing {
public:
  explicit actor_handles(std::shared_ptr<const run_plan> plan)
    : stage_indexing(*plan), plan_(std::move(plan)) {
    // nop
  }

  std::vector<data_source_actor> data;     ///< Data sources, by pipeline().
  std::vector<scheduler_actor> schedulers; ///< Schedulers, by rank.
  std::vector<stage_actor> stages;         ///< Stages, by index().
  std::vector<performer_actor> optimizers; ///< Optimizer shards, by shard_index().
  /// Parameter servers, by shard_index(); empty if the run has none.
  std::vector<performer_actor> servers;
  /// Schedulers of servers' devices, by shard_index().
  std::vector<scheduler_actor> server_schedulers;
  std::map<std::pair<std::size_t, int>, performer_actor>
    experts; ///< Experts, by the host's index() and the number in the network's list.
  /// The user's actors between stages, by index() of the lower stage; the handle of a
  /// last stage is null. Empty if the run has no relays.
  std::vector<neighbour_actor> relays;
  /// Ledgers of relays, at the indexes of `relays`; null for a last stage.
  std::vector<std::unique_ptr<relay_ledger>> ledgers;
  recorder_actor recorder;
  coordinator_actor coordinator;

  const data_source_actor& data_source(position of_pipeline) const {
    return data[pipeline(of_pipeline)];
  }

  const stage_actor& stage(position where) const { return stages[index(where)]; }

  /// Calls each(handle) with the receiver of a stage's tensors for a neighbour: the
  /// neighbour, or the relay between both.
  template <class Each>
  void to_neighbour(position from, position to, const Each& each) const {
    if (relays.empty())
      return each(stage(to));
    each(relays[index(from.stage < to.stage ? from : to)]);
  }

  /// The ledger of the relay between two neighbours; null if there is no relay. Owned
  /// by this object.
  relay_ledger* ledger_between(position a, position b) const {
    const auto lower = a.stage < b.stage ? a : b;
    return ledgers.empty() || lower.stage < 0 ? nullptr : ledgers[index(lower)].get();
  }

  const performer_actor& optimizer(position where) const {
    return optimizers[shard_index(where)];
  }

  /// Calls each(handle) with the handle of a performer.
  /// \pre the run has that performer
  template <class Each>
  void to(const performer& target, const Each& each) const {
    switch (target.kind) {
    case role::stage:
      return each(stage(target.where));
    case role::optimizer_shard:
      return each(optimizer(target.where));
    case role::expert:
      return each(experts.at({index(target.where), target.expert}));
    default:
      return each(servers[shard_index(target.where)]);
    }
  }

  /// The scheduler that grants a performer the device.
  const scheduler_actor& scheduler_of(const performer& target) const {
    return target.kind == role::parameter_server
             ? server_schedulers[shard_index(target.where)]
             : schedulers[static_cast<std::size_t>(plan_->rank_of(target.where))];
  }

  /// Calls each(handle) for all actors that receive `mail::explain` in a stall.
  template <class Each>
  void for_each_asked(const Each& each) const {
    for_each_of(data, each);
    for_each_of(schedulers, each);
    for_each_of(stages, each);
    for_each_of(optimizers, each);
    for (const auto& [key, expert] : experts)
      each(expert);
    for_each_of(servers, each);
  }

  /// Calls each(handle) for all actors that have been made, except the coordinator.
  template <class Each>
  void for_each(const Each& each) const {
    for_each_asked(each);
    for_each_of(server_schedulers, each);
    for (const auto& relay_actor : relays)
      if (relay_actor)
        each(relay_actor);
    if (recorder)
      each(recorder);
  }

private:
  template <class Handle, class Each>
  static void for_each_of(const std::vector<Handle>& handles, const Each& each) {
    for (const auto& handle : handles)
      each(handle);
  }

  std::shared_ptr<const run_plan> plan_;
};

} // namespace troupe
