// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/actor_registry.hpp"

#include "actors/experts/expert_core.hpp"
#include "actors/mail/send.hpp"
#include "actors/mail/thrown.hpp"
#include "actors/pipeline/data_source.hpp"
#include "actors/pipeline/stage.hpp"
#include "actors/rank/scheduler.hpp"
#include "actors/run/coordinator.hpp"
#include "actors/updates/optimizer_core.hpp"
#include "actors/updates/server_core.hpp"
#include "plan/replica_rules.hpp"
#include "plan/stage_experts.hpp"

#include <caf/exit_reason.hpp>

#include <utility>

namespace troupe {

void actor_registry::spawn(caf::actor_system& system) {
  auto& handles = *handles_;
  local_coordinator_ = system.spawn(troupe::coordinator, shared_, status_);
  if (log_) {
    handles.coordinator = local_coordinator_;
    handles.recorder = system.spawn(recorder, shared_, log_, status_);
  } else {
    handles.coordinator = remote_actors_->coordinator();
    handles.recorder = remote_actors_->recorder();
  }
  for (int rank = 0; rank < plan_->ranks(); ++rank)
    if (const auto& resources = resources_.ranks()[static_cast<std::size_t>(rank)])
      handles.schedulers.push_back(system.spawn(scheduler, shared_, std::optional{rank},
                                                resources->computer->depth()));
    else
      handles.schedulers.push_back(remote_actors_->scheduler(rank));
  spawn_stages(system);
  if (relays_)
    spawn_relays(system);
  spawn_experts(system);
  for_each_shard([&](position where) { spawn_shard(system, where); });
  for (int r = 0; r < pipelines(); ++r)
    if (const auto first = stage_at(r, 0); is_here(first))
      handles.data.push_back(system.spawn(data_source, shared_, first,
                                          resources_.data_of(first),
                                          resources_.reader_of(first)));
    else
      handles.data.push_back(remote_actors_->data_source(first));
}

void actor_registry::spawn_experts(caf::actor_system& system) {
  for (const auto& e : resources_.experts())
    handles_->experts[{index(e.host), e.number}] = spawn(
      system, {role::expert, e.host, e.number},
      name_of_expert(*plan_, e.number, e.host),
      resources_.rank_of_stage(e.host).devices(),
      [plan = plan_, e](performer_port& port) {
        return std::make_shared<expert_core>(plan, e.host, e.number, port, e.work);
      });
  for (int rank = 0; rank < plan_->ranks(); ++rank) {
    if (is_here(rank))
      continue;
    for (const auto& host : plan_->hosted_by(rank))
      for (const int number : experts_of(*plan_, host.stage))
        if (host_of(*plan_, number, host) == host)
          handles_->experts[{index(host), number}] =
            remote_actors_->performer({role::expert, host, number});
  }
}

performer_actor actor_registry::spawn(caf::actor_system& system, performer identity,
                                      const std::string& name,
                                      const performer_devices& devices,
                                      const core_maker& make) {
  return system.spawn(performer_behavior, shared_, identity, name, devices, make);
}

void actor_registry::spawn_stages(caf::actor_system& system) {
  for (int r = 0; r < pipelines(); ++r)
    for (int s = 0; s < stages(); ++s) {
      const auto where = stage_at(r, s);
      handles_->stages.push_back(
        is_here(where) ? system.spawn(
          stage, shared_, resources_.rank_of_stage(where).devices(), where,
          resources_.work_of(where), resources_.meetings_of(where),
          resources_.saver_of(where), resources_.channels_of(where))
                       : remote_actors_->stage(where));
    }
}

/// Makes a relay behind each stage but the last of a pipeline.
void actor_registry::spawn_relays(caf::actor_system& system) {
  auto& handles = *handles_;
  handles.relays.resize(handles.stages.size());
  handles.ledgers.resize(handles.stages.size());
  for (int r = 0; r < pipelines(); ++r)
    for (int s = 0; s + 1 < stages(); ++s) {
      const auto lower = stage_at(r, s), upper = stage_at(r, s + 1);
      handles.ledgers[index(lower)] =
        std::make_unique<relay_ledger>(name_of_relay(plan_->replica_at(lower), s));
      const relay_place location{plan_->replica_at(lower), s, handles.stage(lower),
                                 handles.stage(upper)};
      handles.relays[index(lower)] =
        made_by("the maker of " + handles.ledgers[index(lower)]->name(),
                [&] { return relays_->make(system, location); });
    }
}

/// Makes the optimizer shard of a stage, and in a plan with parameter servers also the
/// server.
void actor_registry::spawn_shard(caf::actor_system& system, position where) {
  if (!is_here(where)) {
    handles_->optimizers.push_back(
      remote_actors_->performer({role::optimizer_shard, where}));
    return;
  }
  performer_devices devices{{}, resources_.rank_of_stage(where).sums.get()};
  for (int d = 0; d < directions(); ++d)
    devices.computers.push_back(
      resources_.rank_of_stage({where.data, d, where.stage, where.tensor})
        .computer.get());
  auto memory = resources_.optimizer_of(where);
  if (updates_are_by(*plan_, update_by::servers)) {
    auto& server_device = resources_.server_device(where);
    handles_->server_schedulers.push_back(
      system.spawn(scheduler, shared_, std::optional<int>{}, server_device.depth()));
    const server_memory of_server{resources_.shared_of(where),
                                  std::exchange(memory.state, {})};
    handles_->servers.push_back(
      spawn(system, {role::parameter_server, where}, plan_->server_of(where),
            {{&server_device}}, [plan = plan_, where, of_server](performer_port& port) {
              return std::make_shared<server_core>(plan, where, port, of_server);
            }));
  }
  handles_->optimizers.push_back(
    spawn(system, {role::optimizer_shard, where}, plan_->optimizer_of(where), devices,
          [plan = plan_, where, memory](performer_port& port) {
            return std::make_shared<optimizer_core>(plan, where, port, memory);
          }));
}

// The coordinator is first, as the coordinator must receive every failure. First stages
// are last, as first stages begin the run.
void actor_registry::wire() {
  const mail::wiring wiring{handles_};
  const auto wire = [&](const auto& receivers) {
    for (const auto& receiver : receivers)
      send_external(*shared_.meter, receiver, mail::wiring{wiring});
  };
  send_external(*shared_.meter, local_coordinator_, mail::wiring{wiring});
  wire(handles_->optimizers);
  wire(handles_->server_schedulers);
  wire(handles_->servers);
  for (const auto& [key, expert] : handles_->experts)
    send_external(*shared_.meter, expert, mail::wiring{wiring});
  wire(handles_->schedulers);
  if (remote_actors_ == nullptr)
    wire(handles_->data);
  for (int s = stages(); s-- > 0;)
    for (int r = 0; r < pipelines(); ++r)
      send_external(*shared_.meter, handles_->stage(stage_at(r, s)),
                    mail::wiring{wiring});
}

void actor_registry::begin() {
  if (remote_actors_ == nullptr)
    return;
  for (const auto& source : handles_->data)
    send_external(*shared_.meter, source, mail::wiring{handles_});
}

/// Includes actors that were made before another could not be made.
template <class Each>
void actor_registry::for_each(const Each& each) const {
  if (!handles_)
    return;
  handles_->for_each(each);
  for (const auto& handle : {handles_->coordinator, local_coordinator_})
    if (handle)
      each(handle);
}

void actor_registry::send_exits() {
  for_each([](const auto& handle) {
    caf::anon_send_exit(handle, caf::exit_reason::user_shutdown);
  });
}

void actor_registry::count(actor_runtime& runtime) const {
  for_each([&](const auto& handle) { runtime.count(handle); });
}

} // namespace troupe
