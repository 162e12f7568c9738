// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/roster.hpp"

#include "actors/experts/expert_core.hpp"
#include "actors/mail/mail.hpp"
#include "actors/mail/thrown.hpp"
#include "actors/pipeline/data_source.hpp"
#include "actors/pipeline/stage.hpp"
#include "actors/rank/scheduler.hpp"
#include "actors/run/coordinator.hpp"
#include "actors/updates/optimizer_core.hpp"
#include "actors/updates/server_core.hpp"

#include <caf/exit_reason.hpp>

#include <utility>

namespace troupe {

void roster::spawn(caf::actor_system& system) {
  auto& all = *everybody_;
  own_coordinator_ = system.spawn(troupe::coordinator, shared_, board_);
  if (log_) {
    all.coordinator = own_coordinator_;
    all.recorder = system.spawn(recorder, shared_, log_, board_);
  } else {
    all.coordinator = elsewhere_->coordinator();
    all.recorder = elsewhere_->recorder();
  }
  for (int rank = 0; rank < plan_->ranks(); ++rank)
    if (const auto& resources = equipped_.ranks()[static_cast<std::size_t>(rank)])
      all.schedulers.push_back(system.spawn(scheduler, shared_, std::optional{rank},
                                            resources->computer->depth()));
    else
      all.schedulers.push_back(elsewhere_->scheduler(rank));
  spawn_stages(system);
  if (relays_)
    spawn_relays(system);
  spawn_experts(system);
  for_each_shard([&](position where) { spawn_shard(system, where); });
  for (int r = 0; r < pipelines(); ++r)
    if (const auto first = at(r, 0); is_here(first))
      all.data.push_back(system.spawn(data_source, shared_, first,
                                      equipped_.data_of(first),
                                      equipped_.reader_of(first)));
    else
      all.data.push_back(elsewhere_->data_source(first));
}

void roster::spawn_experts(caf::actor_system& system) {
  for (const auto& e : equipped_.experts())
    everybody_->experts[{index(e.host), e.number}] = spawn(
      system, {role::expert, e.host, e.number}, plan_->name_of_expert(e.number, e.host),
      equipped_.rank_of_stage(e.host).devices(),
      [plan = plan_, e](performer_port& port) {
        return std::make_shared<expert_core>(plan, e.host, e.number, port, e.work);
      });
  for (int rank = 0; rank < plan_->ranks(); ++rank) {
    if (is_here(rank))
      continue;
    for (const auto& host : plan_->hosted_by(rank))
      for (const int number : plan_->experts_of(host.stage))
        if (plan_->host_of(number, host) == host)
          everybody_->experts[{index(host), number}] =
            elsewhere_->performer({role::expert, host, number});
  }
}

performer_actor roster::spawn(caf::actor_system& system, performer who,
                              const std::string& name, const performer_devices& devices,
                              const core_maker& make) {
  return system.spawn(performer_behavior, shared_, who, name, devices, make);
}

void roster::spawn_stages(caf::actor_system& system) {
  for (int r = 0; r < pipelines(); ++r)
    for (int s = 0; s < stages(); ++s) {
      const auto where = at(r, s);
      everybody_->stages.push_back(
        is_here(where)
          ? system.spawn(stage, shared_, equipped_.rank_of_stage(where).devices(),
                         where, equipped_.work_of(where), equipped_.meetings_of(where),
                         equipped_.saver_of(where), equipped_.edges_of(where))
          : elsewhere_->stage(where));
    }
}

/// Makes a relay behind each stage but the last of a pipeline.
void roster::spawn_relays(caf::actor_system& system) {
  auto& all = *everybody_;
  all.relays.resize(all.stages.size());
  all.ledgers.resize(all.stages.size());
  for (int r = 0; r < pipelines(); ++r)
    for (int s = 0; s + 1 < stages(); ++s) {
      const auto lower = at(r, s), upper = at(r, s + 1);
      all.ledgers[index(lower)] =
        std::make_unique<relay_ledger>(name_of_relay(plan_->replica_at(lower), s));
      const relay_place place{plan_->replica_at(lower), s, all.stage(lower),
                              all.stage(upper)};
      all.relays[index(lower)] =
        made_by("the maker of " + all.ledgers[index(lower)]->name(),
                [&] { return relays_->make(system, place); });
    }
}

/// Makes the optimizer shard of a stage, and in a plan with parameter servers also the
/// server.
void roster::spawn_shard(caf::actor_system& system, position where) {
  if (!is_here(where)) {
    everybody_->optimizers.push_back(
      elsewhere_->performer({role::optimizer_shard, where}));
    return;
  }
  performer_devices devices{{}, equipped_.rank_of_stage(where).sums.get()};
  for (int d = 0; d < directions(); ++d)
    devices.computers.push_back(
      equipped_.rank_of_stage({where.data, d, where.stage, where.tensor})
        .computer.get());
  auto memory = equipped_.optimizer_of(where);
  if (plan_->updates_are_by(update_by::servers)) {
    auto& own = equipped_.server_device(where);
    everybody_->server_schedulers.push_back(
      system.spawn(scheduler, shared_, std::optional<int>{}, own.depth()));
    const server_memory of_server{equipped_.shared_of(where),
                                  std::exchange(memory.state, {})};
    everybody_->servers.push_back(
      spawn(system, {role::parameter_server, where}, plan_->server_of(where), {{&own}},
            [plan = plan_, where, of_server](performer_port& port) {
              return std::make_shared<server_core>(plan, where, port, of_server);
            }));
  }
  everybody_->optimizers.push_back(
    spawn(system, {role::optimizer_shard, where}, plan_->optimizer_of(where), devices,
          [plan = plan_, where, memory](performer_port& port) {
            return std::make_shared<optimizer_core>(plan, where, port, memory);
          }));
}

// The coordinator is first, as the coordinator must receive every failure. First stages
// are last, as first stages begin the run.
void roster::wire() {
  const mail::wiring wiring{everybody_};
  const auto wire = [&](const auto& all) {
    for (const auto& one : all)
      post(*shared_.meter, one, mail::wiring{wiring});
  };
  post(*shared_.meter, own_coordinator_, mail::wiring{wiring});
  wire(everybody_->optimizers);
  wire(everybody_->server_schedulers);
  wire(everybody_->servers);
  for (const auto& [place, one] : everybody_->experts)
    post(*shared_.meter, one, mail::wiring{wiring});
  wire(everybody_->schedulers);
  if (elsewhere_ == nullptr)
    wire(everybody_->data);
  for (int s = stages(); s-- > 0;)
    for (int r = 0; r < pipelines(); ++r)
      post(*shared_.meter, everybody_->stage(at(r, s)), mail::wiring{wiring});
}

void roster::begin() {
  if (elsewhere_ == nullptr)
    return;
  for (const auto& one : everybody_->data)
    post(*shared_.meter, one, mail::wiring{everybody_});
}

/// Includes actors that were made before another could not be made.
template <class Each>
void roster::for_each(const Each& each) const {
  if (!everybody_)
    return;
  everybody_->for_each(each);
  for (const auto& one : {everybody_->coordinator, own_coordinator_})
    if (one)
      each(one);
}

void roster::dismiss() {
  for_each(
    [](const auto& one) { caf::anon_send_exit(one, caf::exit_reason::user_shutdown); });
}

void roster::count(actor_house& house) const {
  for_each([&](const auto& one) { house.count(one); });
}

} // namespace troupe
