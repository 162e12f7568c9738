#include "actors/run/roster.hpp"

#include "actors/experts/expert.hpp"
#include "actors/mail/mail.hpp"
#include "actors/pipeline/data_source.hpp"
#include "actors/pipeline/stage.hpp"
#include "actors/rank/scheduler.hpp"
#include "actors/run/coordinator.hpp"
#include "actors/updates/optimizer_shard.hpp"
#include "actors/updates/parameter_server.hpp"

#include <caf/exit_reason.hpp>

namespace troupe {

namespace {

/// Those who differ from `where` along one axis of the mesh alone: one list for all of
/// them.
template <class Handle, class Index>
group<Handle> along(int position::*axis, int count, position where,
                    const std::vector<Handle>& all, const Index& index,
                    known_groups<Handle>& known) {
  where.*axis = 0;
  auto& list = known[index(where)];
  if (!list) {
    std::vector<Handle> members;
    for (; where.*axis < count; ++(where.*axis))
      members.push_back(all[index(where)]);
    list = std::make_shared<const std::vector<Handle>>(std::move(members));
  }
  return list;
}

} // namespace

void roster::spawn(caf::actor_system& system) {
  coordinator_ = system.spawn(troupe::coordinator, shared(), board_);
  actors_.recorder = system.spawn(recorder, shared(), log_, board_);
  for (int rank = 0; rank < plan_->ranks(); ++rank)
    actors_.schedulers.push_back(system.spawn(
      scheduler, shared(), rank,
      equipped_.ranks()[static_cast<std::size_t>(rank)]->computer->depth()));
  for (int r = 0; r < pipelines(); ++r)
    for (int s = 0; s < stages(); ++s)
      actors_.stages.push_back(system.spawn(
        stage, shared(), equipped_.rank_of_stage(at(r, s)).computer.get(), at(r, s),
        equipped_.tensors_of(at(r, s)), equipped_.exchange_of(at(r, s))));
  for (const auto& e : equipped_.experts())
    actors_.experts.push_back(
      system.spawn(expert, shared(), equipped_.rank_of_stage(e.host).computer.get(),
                   e.host, e.number, e.in_stage, e.on_rank, e.tensors));
  for_each_shard([&](position where) {
    std::vector<device*> computers;
    for (int r = 0; r < directions(); ++r)
      computers.push_back(
        equipped_.rank_of_stage({where.data, r, where.stage, where.tensor})
          .computer.get());
    auto memory = equipped_.optimizer_of(where);
    if (has_servers())
      actors_.servers.push_back(system.spawn(
        parameter_server, shared(), where,
        std::shared_ptr<device>{equipped_.server_device(where)},
        server_memory{equipped_.shared_of(where), std::move(memory.state)}));
    actors_.shards.push_back(
      system.spawn(optimizer_shard, shared(), where, computers, std::move(memory)));
  });
  for (int r = 0; r < pipelines(); ++r)
    actors_.data.push_back(system.spawn(
      data_source, shared(), at(r, 0), equipped_.data_of(at(r, 0)),
      actors_.stages[index(at(r, 0))], actors_.stages[index(at(r, stages() - 1))],
      coordinator_, equipped_.reader_of(at(r, 0))));
}

// The coordinator first: it must hear of whoever fails. First stages last: they begin.
void roster::wire() {
  post(meter_, coordinator_, actors_);
  known_groups<optimizer_shard_actor> optimizers;
  known_groups<parameter_server_actor> servers;
  for_each_shard([&](position where) { wire_optimizer(where, optimizers, servers); });

  for (int rank = 0; rank < plan_->ranks(); ++rank) {
    scheduler_peers peers{{}, {}, actors_.recorder, coordinator_};
    for (const auto& where : plan_->hosted_by(rank))
      peers.stages.push_back(actors_.stages[index(where)]);
    for (std::size_t i = 0; i < equipped_.experts().size(); ++i)
      if (plan_->rank_of(equipped_.experts()[i].host) == rank)
        peers.experts.push_back(actors_.experts[i]);
    post(meter_, actors_.schedulers[static_cast<std::size_t>(rank)], std::move(peers));
  }
  known_groups<stage_actor> shards, replicas;
  const auto index = [this](position where) { return this->index(where); };
  for (int s = stages(); s-- > 0;)
    for (int r = 0; r < pipelines(); ++r) {
      const auto where = at(r, s);
      stage_peers peers;
      peers.data = actors_.data[static_cast<std::size_t>(r)];
      if (s > 0)
        peers.previous = actors_.stages[index(at(r, s - 1))];
      if (s + 1 < stages())
        peers.next = actors_.stages[index(at(r, s + 1))];
      if (plan_->tensor > 1)
        peers.shards =
          along(&position::tensor, plan_->tensor, where, actors_.stages, index, shards);
      if (plan_->shares_out(shared_out::gradients))
        peers.others =
          along(&position::data, plan_->data, where, actors_.stages, index, replicas);
      peers.scheduler =
        actors_.schedulers[static_cast<std::size_t>(plan_->rank_of(where))];
      peers.optimizer = actors_.shards[shard_index(where)];
      peers.recorder = actors_.recorder;
      peers.coordinator = coordinator_;
      wire_experts(where, peers);
      post(meter_, actors_.stages[index(where)], std::move(peers));
    }
}

/// Tells a stage where its experts are, and those that stand with it whom they serve.
void roster::wire_experts(position where, stage_peers& peers) {
  for (const int number : plan_->experts_of(where.stage)) {
    const auto host = plan_->host_of(number, where);
    const auto& actor = actors_.experts[equipped_.expert_at(host, number)];
    peers.experts.push_back(actor);
    if (host != where)
      continue;
    expert_peers own{{}, peers.scheduler, coordinator_};
    auto source = where;
    source.data = where.data / plan_->expert * plan_->expert;
    for (int e = 0; e < plan_->expert; ++e, ++source.data)
      own.sources.push_back(actors_.stages[index(source)]);
    post(meter_, actor, std::move(own));
  }
}

void roster::wire_optimizer(position where,
                            known_groups<optimizer_shard_actor>& replicas,
                            known_groups<parameter_server_actor>& servers) {
  const auto index = [this](position p) { return shard_index(p); };
  const auto shard = [&](position of) { return actors_.shards[shard_index(of)]; };
  optimizer_shard_peers peers{{}, {}, {}, {}, coordinator_};
  if (plan_->work && plan_->work->optimizer.clip > 0) {
    const auto members = plan_->norm_group(where);
    for (const auto& member : members) // only the first needs them all
      if (member == members.front() || where == members.front())
        peers.shards.push_back(shard(member));
  }
  if (plan_->data > 1)
    peers.others =
      along(&position::data, plan_->data, where, actors_.shards, index, replicas);
  if (has_servers()) {
    peers.servers =
      along(&position::data, plan_->data, where, actors_.servers, index, servers);
    post(meter_, actors_.servers[shard_index(where)],
         parameter_server_peers{peers.others, coordinator_});
  }
  for (int r = 0; r < directions(); ++r)
    peers.stages.push_back(
      actors_.stages[this->index({where.data, r, where.stage, where.tensor})]);
  post(meter_, shard(where), std::move(peers));
}

void roster::dismiss() {
  const auto end_all = [](auto& all) {
    for (auto& one : all)
      caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  };
  end_all(actors_.data);
  end_all(actors_.schedulers);
  end_all(actors_.stages);
  end_all(actors_.shards);
  end_all(actors_.experts);
  end_all(actors_.servers);
  if (actors_.recorder)
    caf::anon_send_exit(actors_.recorder, caf::exit_reason::user_shutdown);
  if (coordinator_)
    caf::anon_send_exit(coordinator_, caf::exit_reason::user_shutdown);
}

void roster::clear() {
  actors_ = coordinator_peers{};
  coordinator_ = coordinator_actor{};
}

} // namespace troupe
