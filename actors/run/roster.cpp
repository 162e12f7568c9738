#include "actors/run/roster.hpp"

#include "actors/experts/expert_core.hpp"
#include "actors/mail/mail.hpp"
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
  all.coordinator = system.spawn(troupe::coordinator, shared_, board_);
  all.recorder = system.spawn(recorder, shared_, log_, board_);
  for (int rank = 0; rank < plan_->ranks(); ++rank)
    all.schedulers.push_back(system.spawn(
      scheduler, shared_, std::optional{rank},
      equipped_.ranks()[static_cast<std::size_t>(rank)]->computer->depth()));
  spawn_stages(system);
  for (const auto& e : equipped_.experts())
    all.experts[{index(e.host), e.number}] = spawn(
      system, {role::expert, e.host, e.number}, plan_->name_of_expert(e.number, e.host),
      equipped_.rank_of_stage(e.host).devices(),
      [plan = plan_, e](performer_port& port) {
        return std::make_shared<expert_core>(plan, e.host, e.number, port, e.work);
      });
  for_each_shard([&](position where) { spawn_shard(system, where); });
  for (int r = 0; r < pipelines(); ++r)
    all.data.push_back(system.spawn(data_source, shared_, at(r, 0),
                                    equipped_.data_of(at(r, 0)),
                                    equipped_.reader_of(at(r, 0))));
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
        system.spawn(stage, shared_, equipped_.rank_of_stage(where).devices(), where,
                     equipped_.work_of(where), equipped_.meetings_of(where)));
    }
}

/// The optimizer shard of a stage, and where there are some its parameter server.
void roster::spawn_shard(caf::actor_system& system, position where) {
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

// The coordinator first: it must hear of whoever fails. First stages last: they begin.
void roster::wire() {
  const mail::wiring wiring{everybody_};
  const auto wire = [&](const auto& all) {
    for (const auto& one : all)
      post(*shared_.meter, one, mail::wiring{wiring});
  };
  post(*shared_.meter, everybody_->coordinator, mail::wiring{wiring});
  wire(everybody_->optimizers);
  wire(everybody_->server_schedulers);
  wire(everybody_->servers);
  for (const auto& [place, one] : everybody_->experts)
    post(*shared_.meter, one, mail::wiring{wiring});
  wire(everybody_->schedulers);
  wire(everybody_->data);
  for (int s = stages(); s-- > 0;)
    for (int r = 0; r < pipelines(); ++r)
      post(*shared_.meter, everybody_->stage(at(r, s)), mail::wiring{wiring});
}

void roster::dismiss() {
  if (!everybody_)
    return;
  const auto end = [](const auto& one) {
    caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  };
  everybody_->for_each(end);
  if (everybody_->coordinator)
    end(everybody_->coordinator);
}

} // namespace troupe
