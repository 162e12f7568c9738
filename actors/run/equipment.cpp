// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/equipment.hpp"

#include "actors/experts/expert_tensors.hpp"
#include "actors/pipeline/simulated_stage.hpp"
#include "actors/pipeline/stage_tensors.hpp"
#include "actors/plan/costs.hpp"
#include "actors/plan/layer_reader.hpp"
#include "actors/run/actor_pool.hpp"
#include "kernels/switched_off.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

namespace {

/// "F3 of stage 1".
std::string text_of(const work& what) {
  const auto of = static_cast<op>(what.kind);
  if (what.kind >= op_count || of == op::update)
    return "an update or a copy of stage " + std::to_string(what.stage);
  return to_string({of, what.direction, what.stage, what.microbatch}, true);
}

} // namespace

equipment::equipment(const run_plan& plan, virtual_clock& clock, run_watch& watch,
                     const std::vector<int>& here, const device_maker& make_virtual,
                     const known_groups& groups, const std::function<bool()>& ended)
  : places(plan),
    plan_(plan),
    clock_(clock),
    watch_(watch),
    make_virtual_(make_virtual) {
  if (real() && plan.work && !here.empty())
    threads_ = std::make_shared<compute_threads>(
      std::clamp(
        plan.threads, 1,
        std::max(static_cast<int>(here.size()) * plan.devices() / plan.ranks(), 1)),
      std::max(plan.threads, 1));
  if (threads_)
    threads_->broken = [this] { watch_.break_down(); };
  ranks_.resize(static_cast<std::size_t>(plan.ranks()));
  for (const int rank : here)
    equip_rank(rank);
  groups_ = std::make_unique<gpu_groups>(plan, groups, here, threads_, watch_, ended);
  equip_stages();
  equip_meetings();
  equip_experts();
  for_each_shard([this](position where) { equip_exchange(where); });
  at_start_ = allocations();
}

equipment::~equipment() {
  for (auto& rank : ranks_)
    if (rank) {
      rank->computer.reset();
      rank->sums.reset();
    }
  groups_.reset();
  server_devices_.clear();
  threads_.reset();
}

std::vector<device*> equipment::devices() const {
  std::vector<device*> result;
  for (const auto& rank : ranks_)
    if (rank) {
      result.push_back(rank->computer.get());
      if (rank->sums)
        result.push_back(rank->sums.get());
    }
  for (const auto& own : server_devices_)
    if (own)
      result.push_back(own.get());
  return result;
}

void equipment::stop() {
  for (auto* const one : devices())
    one->stop();
  groups_->stop();
}

bool equipment::idle() const {
  return std::ranges::all_of(devices(), [](const auto* one) { return one->idle(); })
         && groups_->idle() && (!threads_ || threads_->quiet());
}

sample_reader equipment::reader_of(position first) {
  if (!real())
    return {};
  return {&watch_.reader_of(first), actor_pool::hand_over};
}

std::int64_t equipment::allocations() const {
  std::int64_t result = 0;
  for (const auto& rank : ranks_)
    if (rank)
      result += rank->memory.all().allocations();
  return result;
}

/// Empty where messages carry all exchanges.
group_finder equipment::groups_of(position where) {
  if (groups_->none())
    return {};
  return [this, where](meeting_kind about, int stride) {
    return groups_->find(where, about, stride);
  };
}

void equipment::equip_rank(int rank) {
  auto& made = ranks_[static_cast<std::size_t>(rank)];
  made = std::make_unique<rank_resources>(plan_, rank);
  const auto of_data = static_cast<std::size_t>(plan_.data_of(rank));
  const double slowdown = plan_.slowdowns.empty() ? 1 : plan_.slowdowns[of_data];
  made->computer = make_device(slowdown, real() ? &watch_.device_of(rank) : nullptr,
                               made->main_stream.threads(), &made->main_stream,
                               rank == 0 ? plan_.launches.get() : nullptr);
  if (plan_.sums_take_time())
    made->sums = make_virtual_device(costs_of_sums(plan_.sum_rate), slowdown);
}

/// \param seen null in virtual time
std::unique_ptr<device> equipment::make_device(double slowdown, occupation* seen,
                                               int threads, const stream* on,
                                               launch_times* times) {
  if (seen != nullptr)
    return std::make_unique<cpu_device>(*seen, threads_, threads, on, text_of, times);
  return make_virtual_device(plan_.cost, slowdown, on);
}

std::unique_ptr<device> equipment::make_virtual_device(cost_model cost, double slowdown,
                                                       const stream* on) {
  if (make_virtual_)
    return make_virtual_(clock_);
  if (slowdown == 1)
    return std::make_unique<virtual_device>(clock_, std::move(cost), on);
  return std::make_unique<virtual_device>(
    clock_,
    [cost = std::move(cost), slowdown](const work& what) {
      return static_cast<nanoseconds>(
        std::llround(static_cast<double>(cost(what)) * slowdown));
    },
    on);
}

void equipment::equip_stages() {
  data_.resize(static_cast<std::size_t>(pipelines()));
  work_.resize(static_cast<std::size_t>(pipelines() * stages()));
  edges_.resize(work_.size());
  meetings_.resize(work_.size());
  savers_.resize(work_.size());
  optimizers_.resize(shards());
  shared_.resize(shards());
  server_devices_.resize(shards());
  for (int pipeline = 0; pipeline < pipelines(); ++pipeline)
    if (plan_.work)
      equip_pipeline(pipeline);
    else
      for (int s = 0; s < stages(); ++s)
        work_[index(at(pipeline, s))] =
          std::make_shared<simulated_stage>(plan_, at(pipeline, s));
  for_each_shard([this](position where) {
    if (plan_.work && is_here(where))
      equip_optimizer(where);
  });
}

void equipment::equip_pipeline(int pipeline) {
  const auto first = at(pipeline, 0);
  if (is_here(first))
    data_[static_cast<std::size_t>(pipeline)] = std::make_shared<data_pools>(
      plan_, first, rank_of_stage(first).memory.of(memory_use::activations));
  std::shared_ptr<pool> between; // the stage before and this one
  for (int s = 0; s < stages(); ++s) {
    const auto where = at(pipeline, s);
    auto& [below, above] = edges_[index(where)];
    if (is_here(where)) {
      auto& rank = rank_of_stage(where);
      if (s > 0)
        below = side_of(where, at(pipeline, s - 1), between);
      if (s + 1 < stages())
        above = side_of(where, at(pipeline, s + 1), {});
      work_[index(where)] = std::make_shared<stage_tensors>(
        plan_, where, rank.memory, rank.main_stream,
        boundary{below.room, below.at_launch}, boundary{above.room, above.at_launch});
    }
    between = above.room;
  }
}

/// The channels and the pool between a stage here and a neighbour. \param shared_pool
/// shared with the neighbour if there is no edge; null: the stage has a pool of its own
side_edges equipment::side_of(position where, position neighbour,
                              std::shared_ptr<pool> room) {
  const auto& lower = where.stage < neighbour.stage ? where : neighbour;
  side_edges result{.gives = {groups_->find_edge(where, neighbour, where)},
                    .takes = {groups_->find_edge(neighbour, where, where)},
                    .room = std::move(room),
                    .at_launch = is_here(neighbour) && plan_.leaves_at_launch(lower)
                                 && !switched_off("TROUPE_MARKS")};
  if (!result.room || result.takes.of != nullptr)
    result.room = boundary_pool(plan_, lower, rank_of_stage(where).memory);
  return result;
}

void equipment::equip_optimizer(position where) {
  const auto& work = *plan_.work;
  auto& uses = rank_of_stage(where).memory;
  auto& passing = uses.of(memory_use::passing);
  auto& memory = optimizers_[shard_index(where)];
  if (tie_meeting::is_at(plan_, where)) {
    const auto copies = tie_meeting::copies_of(plan_, where);
    memory.ties =
      std::make_shared<pool>("gradients of a tied matrix of " + plan_.name_of(where),
                             copies.buffers, copies.values, passing);
  }
  for (int d = 0; d < directions(); ++d) {
    const position of{where.data, d, where.stage, where.tensor};
    memory.streams.push_back(is_here(of) ? &rank_of_stage(of).main_stream : nullptr);
  }
  memory.groups = groups_of(where);
  memory.state = std::make_shared<optimizer>(
    work.optimizer, plan_.layers_of(where),
    work.batch * (plan_.dims.before + plan_.dims.steps), uses.of(memory_use::optimizer),
    plan_.state_shares_of(where), plan_.extent_of(shared_out::gradients),
    has_servers() ? bucket_extent::share : plan_.extent_of(shared_out::parameters));
  go_on(*memory.state, where);
  if (plan_.checkpoint_every > 0 || plan_.keep_steps)
    savers_[index(where)] = std::make_shared<stage_saver>(
      plan_, where, memory.state, uses.of(memory_use::checkpoint));
  if (plan_.sums_at_update())
    memory.sums =
      std::make_shared<exchange_pools>(plan_, where, exchange_step::sum, passing);
  if (plan_.gathers_at_update())
    memory.gathers =
      std::make_shared<exchange_pools>(plan_, where, exchange_step::gather, passing);
}

/// If batches came before the run, an optimizer resumes from their state.
void equipment::go_on(optimizer& state, position where) const {
  const auto& earlier = plan_.work->earlier;
  if (earlier.updates.empty())
    return;
  const auto buckets = plan_.layer_buckets(where);
  state.go_on(plan_.batches().before, earlier.updates[buckets.front().of_layer]);
  for (int moment = 0; moment < static_cast<int>(earlier.moments.size()); ++moment) {
    layer_reader layers{plan_, earlier.moments[static_cast<std::size_t>(moment)]};
    for (std::size_t b = 0; b < buckets.size(); ++b)
      state.set_moment(moment, b, layers.values(buckets[b]).data());
  }
}

void equipment::equip_meetings() {
  for (int pipeline = 0; pipeline < pipelines(); ++pipeline)
    for (int s = 0; s < stages(); ++s)
      if (const auto where = at(pipeline, s); is_here(where))
        meetings_[index(where)] = std::make_shared<stage_meetings>(
          plan_, where, *work_of(where),
          &rank_of_stage(where).memory.of(memory_use::passing), groups_of(where));
}

void equipment::equip_experts() {
  for (int rank = 0; rank < plan_.ranks(); ++rank)
    for (const auto& where : plan_.hosted_by(rank)) {
      if (!is_here(where))
        continue;
      auto& resources = rank_of_stage(where);
      const auto pools = plan_.work ? pools_of(plan_, where) : stage_pools{};
      for (const int expert : plan_.experts_of(where.stage)) {
        if (plan_.host_of(expert, where) != where)
          continue;
        auto& place = experts_.emplace_back(expert_place{where, expert, nullptr});
        if (plan_.work)
          place.work = std::make_shared<expert_tensors>(
            plan_, where, expert, pools.stashes, pools.kept_slots, resources.memory,
            resources.main_stream);
        else
          place.work = std::make_shared<simulated_expert>();
      }
    }
}

/// Makes the parameters that data replicas update one by one: a server's share, or the
/// first replica's.
void equipment::equip_exchange(position where) {
  if (!is_here(where))
    return;
  if (shared_parameters::are_at(plan_, where))
    shared_[shard_index(where)] = std::make_shared<shared_parameters>(
      plan_, where,
      plan_.work ? &rank_of_stage(where).memory.of(memory_use::parameters) : nullptr);
  if (has_servers())
    server_devices_[shard_index(where)] =
      make_device(1, real() ? &watch_.device_of_server(where) : nullptr, 1);
  else
    optimizers_[shard_index(where)].parameters =
      shared_[shard_index({0, 0, where.stage, where.tensor})];
}

} // namespace troupe
