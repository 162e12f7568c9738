// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/run_resources.hpp"

#include "actors/experts/expert_tensors.hpp"
#include "actors/pipeline/simulated_stage.hpp"
#include "actors/pipeline/stage_tensors.hpp"
#include "actors/run/actor_threads.hpp"
#include "kernels/switched_off.hpp"
#include "plan/costs.hpp"
#include "plan/layer_reader.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_experts.hpp"
#include "plan/stage_rules.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

namespace {

/// "F3 of stage 1".
std::string text_of(const work& device_work) {
  const auto operation = static_cast<op>(device_work.kind);
  if (device_work.kind >= op_count || operation == op::update)
    return "an update or a copy of stage " + std::to_string(device_work.stage);
  return to_string(
    {operation, device_work.direction, device_work.stage, device_work.microbatch},
    true);
}

} // namespace

run_resources::run_resources(const run_plan& plan, virtual_clock& clock,
                             run_monitor& watch, const std::vector<int>& local_ranks,
                             const device_maker& make_virtual,
                             const known_groups& groups,
                             const std::function<bool()>& ended)
  : stage_indexing(plan),
    plan_(plan),
    clock_(clock),
    watch_(watch),
    make_virtual_(make_virtual) {
  if (real() && plan.work && !local_ranks.empty())
    threads_ = std::make_shared<compute_threads>(
      std::clamp(plan.machine.threads, 1, device_count(plan, local_ranks)),
      std::max(plan.machine.threads, 1));
  if (threads_)
    threads_->broken = [this] { watch_.break_down(); };
  ranks_.resize(static_cast<std::size_t>(plan.ranks()));
  for (const int rank : local_ranks)
    make_rank(rank);
  groups_ =
    std::make_unique<gpu_groups>(plan, groups, local_ranks, threads_, watch_, ended);
  make_stages();
  make_meetings();
  make_experts();
  for_each_shard([this](position where) { make_exchange(where); });
  at_start_ = allocations();
}

run_resources::~run_resources() {
  for (auto& rank : ranks_)
    if (rank) {
      rank->computer.reset();
      rank->sums.reset();
    }
  groups_.reset();
  server_devices_.clear();
  threads_.reset();
}

std::vector<device*> run_resources::devices() const {
  std::vector<device*> result;
  for (const auto& rank : ranks_)
    if (rank) {
      result.push_back(rank->computer.get());
      if (rank->sums)
        result.push_back(rank->sums.get());
    }
  for (const auto& server : server_devices_)
    if (server)
      result.push_back(server.get());
  return result;
}

void run_resources::stop() {
  for (auto* const each_device : devices())
    each_device->stop();
  groups_->stop();
}

bool run_resources::idle() const {
  return std::ranges::all_of(
           devices(), [](const auto* each_device) { return each_device->idle(); })
         && groups_->idle() && (!threads_ || threads_->quiet());
}

sample_reader run_resources::reader_of(position first) {
  if (!real())
    return {};
  return {&watch_.reader_of(first), actor_threads::hand_over};
}

std::int64_t run_resources::allocations() const {
  std::int64_t result = 0;
  for (const auto& rank : ranks_)
    if (rank)
      result += rank->memory.total().allocations();
  return result;
}

/// Empty where messages carry all exchanges.
group_finder run_resources::groups_of(position where) {
  if (groups_->none())
    return {};
  return [this, where](meeting_kind kind, int stride) {
    return groups_->find(where, kind, stride);
  };
}

void run_resources::make_rank(int rank) {
  auto& resources = ranks_[static_cast<std::size_t>(rank)];
  resources = std::make_unique<rank_resources>(plan_, rank);
  if (rank == 0 && plan_.observed.choices)
    resources->main_stream.measure_choices(plan_.observed.choices);
  const auto of_data = static_cast<std::size_t>(plan_.data_of(rank));
  const double slowdown =
    plan_.machine.slowdowns.empty() ? 1 : plan_.machine.slowdowns[of_data];
  resources->computer =
    make_device(slowdown, real() ? &watch_.device_of(rank) : nullptr,
                resources->main_stream.threads(), &resources->main_stream,
                rank == 0 ? plan_.observed.launches.get() : nullptr);
  if (plan_.machine.sums_take_time())
    resources->sums =
      make_virtual_device(costs_of_sums(plan_.machine.sum_rate), slowdown);
}

/// \param seen null in virtual time
std::unique_ptr<device> run_resources::make_device(double slowdown, occupation* seen,
                                                   int threads,
                                                   const stream* compute_stream,
                                                   launch_times* times) {
  if (seen != nullptr)
    return std::make_unique<cpu_device>(*seen, threads_, threads, compute_stream,
                                        text_of, times);
  return make_virtual_device(plan_.machine.cost, slowdown, compute_stream);
}

std::unique_ptr<device>
run_resources::make_virtual_device(cost_model cost, double slowdown,
                                   const stream* compute_stream) {
  if (make_virtual_)
    return make_virtual_(clock_);
  if (slowdown == 1)
    return std::make_unique<virtual_device>(clock_, std::move(cost), compute_stream);
  return std::make_unique<virtual_device>(
    clock_,
    [cost = std::move(cost), slowdown](const work& device_work) {
      return static_cast<nanoseconds>(
        std::llround(static_cast<double>(cost(device_work)) * slowdown));
    },
    compute_stream);
}

void run_resources::make_stages() {
  data_.resize(static_cast<std::size_t>(pipelines()));
  work_.resize(static_cast<std::size_t>(pipelines() * stages()));
  channels_.resize(work_.size());
  meetings_.resize(work_.size());
  savers_.resize(work_.size());
  optimizers_.resize(shards());
  shared_.resize(shards());
  server_devices_.resize(shards());
  for (int pipeline = 0; pipeline < pipelines(); ++pipeline)
    if (plan_.work)
      make_pipeline(pipeline);
    else
      for (int s = 0; s < stages(); ++s)
        work_[index(stage_at(pipeline, s))] = stage_work_of(
          std::make_shared<simulated_stage>(plan_, stage_at(pipeline, s)));
  for_each_shard([this](position where) {
    if (plan_.work && is_here(where))
      make_optimizer(where);
  });
}

void run_resources::make_pipeline(int pipeline) {
  const auto first = stage_at(pipeline, 0);
  if (is_here(first))
    data_[static_cast<std::size_t>(pipeline)] = std::make_shared<data_pools>(
      plan_, first, rank_of_stage(first).memory.account(memory_use::activations));
  std::shared_ptr<pool> between; // the stage before and this one
  for (int s = 0; s < stages(); ++s) {
    const auto where = stage_at(pipeline, s);
    auto& [below, above] = channels_[index(where)];
    if (is_here(where)) {
      auto& rank = rank_of_stage(where);
      if (s > 0)
        below = channels_between(where, stage_at(pipeline, s - 1), between);
      if (s + 1 < stages())
        above = channels_between(where, stage_at(pipeline, s + 1), {});
      work_[index(where)] = stage_work_of(
        std::make_shared<stage_tensors>(plan_, where, rank.memory, rank.main_stream,
                                        boundary{below.buffers, below.at_launch},
                                        boundary{above.buffers, above.at_launch}));
    }
    between = above.buffers;
  }
}

/// The channels and the pool between a stage here and a neighbour. \param shared_pool
/// shared with the neighbour if there is no edge; null: the stage has a pool of its own
peer_channels run_resources::channels_between(position where, position neighbour,
                                              std::shared_ptr<pool> shared_pool) {
  const auto& lower = where.stage < neighbour.stage ? where : neighbour;
  peer_channels result{.outgoing = {groups_->find_channel(where, neighbour, where)},
                       .incoming = {groups_->find_channel(neighbour, where, where)},
                       .buffers = std::move(shared_pool),
                       .at_launch = is_here(neighbour) && leaves_at_launch(plan_, lower)
                                    && !switched_off("TROUPE_MARKS")};
  if (!result.buffers || result.incoming.group != nullptr)
    result.buffers = boundary_pool(plan_, lower, rank_of_stage(where).memory);
  return result;
}

void run_resources::make_optimizer(position where) {
  const auto& work = *plan_.work;
  auto& uses = rank_of_stage(where).memory;
  auto& passing = uses.account(memory_use::passing);
  auto& memory = optimizers_[shard_index(where)];
  if (has_tied_end(plan_, where)) {
    const auto copies = tied_copies(plan_, where);
    memory.ties =
      std::make_shared<pool>("gradients of a tied matrix of " + plan_.name_of(where),
                             copies.buffers, copies.values, passing);
  }
  for (int d = 0; d < directions(); ++d) {
    const position peer{where.data, d, where.stage, where.tensor};
    memory.streams.push_back(is_here(peer) ? &rank_of_stage(peer).main_stream
                                           : nullptr);
  }
  memory.groups = groups_of(where);
  memory.state = std::make_shared<optimizer>(
    work.optimizer, layers_of(plan_, where),
    work.batch * (plan_.dims.batches_before + plan_.dims.steps),
    uses.account(memory_use::optimizer), state_shares_of(plan_, where),
    extent_of(plan_, shared_out::gradients),
    has_servers() ? bucket_extent::share : extent_of(plan_, shared_out::parameters));
  resume(*memory.state, where);
  if (plan_.copies.checkpoint_every > 0 || plan_.copies.keep_steps)
    savers_[index(where)] = std::make_shared<stage_saver>(
      plan_, where, memory.state, uses.account(memory_use::checkpoint));
  if (sums_at_update(plan_))
    memory.sums =
      std::make_shared<exchange_pools>(plan_, where, exchange_step::sum, passing);
  if (gathers_at_update(plan_))
    memory.gathers =
      std::make_shared<exchange_pools>(plan_, where, exchange_step::gather, passing);
}

/// If batches came before the run, an optimizer resumes from their state.
void run_resources::resume(optimizer& state, position where) const {
  const auto& earlier = plan_.work->earlier;
  if (earlier.updates.empty())
    return;
  const auto buckets = layer_buckets(plan_, where);
  state.resume(plan_.batches().preceding_samples,
               earlier.updates[buckets.front().of_layer]);
  for (std::size_t i = 0; i < earlier.state.size(); ++i) {
    layer_reader layers{plan_, earlier.state[i].values};
    for (std::size_t b = 0; b < buckets.size(); ++b)
      state.set_state(static_cast<int>(i), b, layers.values(buckets[b]).data());
  }
}

void run_resources::make_meetings() {
  for (int pipeline = 0; pipeline < pipelines(); ++pipeline)
    for (int s = 0; s < stages(); ++s)
      if (const auto where = stage_at(pipeline, s); is_here(where))
        meetings_[index(where)] = std::make_shared<stage_meetings>(
          plan_, where, work_of(where).memory,
          &rank_of_stage(where).memory.account(memory_use::passing), groups_of(where));
}

void run_resources::make_experts() {
  for (int rank = 0; rank < plan_.ranks(); ++rank)
    for (const auto& where : plan_.hosted_by(rank)) {
      if (!is_here(where))
        continue;
      auto& resources = rank_of_stage(where);
      const auto pools = plan_.work ? pools_of(plan_, where) : stage_pools{};
      for (const int expert : experts_of(plan_, where.stage)) {
        if (host_of(plan_, expert, where) != where)
          continue;
        auto& entry = experts_.emplace_back(hosted_expert{where, expert, nullptr});
        if (plan_.work)
          entry.work = std::make_shared<expert_tensors>(
            plan_, where, expert, pools.stashes, pools.kept_slots, resources.memory,
            resources.main_stream);
        else
          entry.work = std::make_shared<simulated_expert>();
      }
    }
}

/// Makes the parameters that data replicas update one by one: a server's share, or the
/// first replica's.
void run_resources::make_exchange(position where) {
  if (!is_here(where))
    return;
  if (has_shared_parameters(plan_, where))
    shared_[shard_index(where)] = std::make_shared<shared_parameters>(
      plan_, where,
      plan_.work ? &rank_of_stage(where).memory.account(memory_use::parameters)
                 : nullptr);
  if (has_servers())
    server_devices_[shard_index(where)] =
      make_device(1, real() ? &watch_.device_of_server(where) : nullptr, 1);
  else
    optimizers_[shard_index(where)].parameters =
      shared_[shard_index({0, 0, where.stage, where.tensor})];
}

} // namespace troupe
