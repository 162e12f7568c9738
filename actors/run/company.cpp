#include "actors/run/company.hpp"

#include "actors/experts/expert.hpp"
#include "actors/pipeline/data_source.hpp"
#include "actors/pipeline/stage.hpp"
#include "actors/pipeline/stage_pools.hpp"
#include "actors/rank/rank_memory.hpp"
#include "actors/rank/scheduler.hpp"
#include "actors/run/actor_house.hpp"
#include "actors/run/actor_pool.hpp"
#include "actors/run/coordinator.hpp"
#include "actors/run/notice_board.hpp"
#include "actors/run/recorder.hpp"
#include "actors/run/run_watch.hpp"
#include "actors/run/stall.hpp"
#include "actors/run/whole_weights.hpp"
#include "actors/updates/optimizer_shard.hpp"
#include "actors/updates/parameter_server.hpp"
#include "schedules/bounds.hpp"

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <thread>

namespace troupe {

namespace {

using namespace std::chrono_literals;

/// One device and what it computes with.
struct rank_resources {
  rank_resources(const run_plan& plan, int rank) : threads(team_size(plan, rank)) {
    // nop
  }

  rank_memory memory;
  team threads;
  std::unique_ptr<device> computer;
};

/// Groups by where their first member stands.
template <class Handle>
using known_groups = std::map<std::size_t, group<Handle>>;

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

/// An expert and where it stands.
struct expert_place {
  position host;
  int number;   ///< In the network's list.
  int in_stage; ///< Among the experts of its stage.
  int on_rank;  ///< Among those of its rank.
  std::shared_ptr<expert_tensors> tensors;
};

/// A run in the making.
class company {
public:
  explicit company(run_plan plan)
    : plan_(std::make_shared<const run_plan>(std::move(plan))),
      interconnect_(virtual_clock_, plan_->machines, plan_->ranks()),
      log_(std::make_shared<run_log>(*plan_)),
      board_(std::make_shared<notice_board>()) {
    meter_.listen(plan_->listener);
    equip_ranks();
    equip_stages();
    equip_experts();
    for_each_shard([this](position where) { equip_exchange(where); });
    for (const auto& rank : ranks_)
      allocations_at_start_ += rank->memory.all().allocations();
  }

  /// \throws what goes wrong outside the actors
  run_result run();

  /// Whether somebody is still at work, who could not be ended: then nothing of this
  /// may be.
  bool at_work() const { return at_work_; }
  company* left_before = nullptr; ///< Another of those.

private:
  bool real() const { return plan_->clock == clock_kind::real; }
  bool has_servers() const { return plan_->updates_are_by(update_by::servers); }
  int stages() const { return plan_->dims.stages; }
  int directions() const { return plan_->directions(); }
  int pipelines() const { return plan_->replicas() * plan_->tensor; }
  props shared() {
    return {plan_, &meter_, real() ? nullptr : &virtual_clock_,
            real() ? nullptr : &interconnect_};
  }

  rank_resources& rank_of_stage(position where) {
    return *ranks_[static_cast<std::size_t>(plan_->rank_of(where))];
  }

  /// A stage of one pipeline among all: tensor shards of a replica make one each.
  position at(int pipeline, int stage) const {
    const int replica = pipeline / plan_->tensor;
    return {replica / directions(), replica % directions(), stage,
            pipeline % plan_->tensor};
  }

  /// Where a stage stands in lists of all stages, pipeline by pipeline.
  std::size_t index(position where) const {
    const int pipeline = plan_->replica_at(where) * plan_->tensor + where.tensor;
    return static_cast<std::size_t>(pipeline * stages() + where.stage);
  }

  /// Where a stage's optimizer shard stands in the list of all.
  std::size_t shard_index(position where) const {
    return static_cast<std::size_t>(
      (where.data * plan_->tensor + where.tensor) * stages() + where.stage);
  }

  /// Calls each(where) for the stages that optimizer shards have, in their order.
  template <class Each>
  void for_each_shard(const Each& each) const {
    for (int d = 0; d < plan_->data; ++d)
      for (int t = 0; t < plan_->tensor; ++t)
        for (int s = 0; s < stages(); ++s)
          each(position{d, 0, s, t});
  }

  void equip_ranks();
  void equip_stages();
  void equip_optimizer(position where);
  void equip_experts();
  void equip_exchange(position where);
  std::unique_ptr<device> make_device(double slowdown, occupation* seen);
  void spawn();
  void wire();
  void wire_experts(position where, stage_peers& peers);
  void wire_optimizer(position where, known_groups<optimizer_shard_actor>& replicas,
                      known_groups<parameter_server_actor>& servers);
  void play();
  void help();
  void wait_in_real_time();
  void wait_in_virtual_time();
  void wait_for_news();
  void serve_snapshots();
  void evaluate(const notice_board::snapshot& parts);
  bool rest();
  void stop_if_interrupted();
  std::vector<mail::collected> collect();
  void dismiss();
  void come_home();
  bool is_lost(int looks);
  void report_now_and_then();
  run_result result_so_far();

  std::shared_ptr<const run_plan> plan_;
  mail_meter meter_;
  wall_clock wall_clock_;
  virtual_clock virtual_clock_;
  interconnect interconnect_;
  run_watch watch_{*plan_, wall_clock_};
  std::vector<std::unique_ptr<rank_resources>> ranks_;
  std::vector<std::shared_ptr<data_pools>>
    data_; // a pipeline each; null in simulations
  std::vector<std::shared_ptr<stage_tensors>> tensors_;          // by index()
  std::vector<optimizer_memory> optimizers_;                     // by shard_index()
  all_shared_parameters shared_;                                 // likewise
  std::vector<std::shared_ptr<expert_exchange>> exchanges_;      // by index(), or null
  std::vector<expert_place> experts_;                            // rank by rank
  std::map<std::pair<std::size_t, int>, std::size_t> expert_at_; // by host and number
  std::int64_t allocations_at_start_ = 0;
  int evaluated_ = 0;
  bool stopping_ = false;
  bool at_work_ = false;
  double seconds_ = 0;
  std::vector<mail::collected> last_; // what stages have in the end
  std::chrono::steady_clock::time_point last_report_ = std::chrono::steady_clock::now();

  // These may hold buffers, so they go before the pools do.
  std::shared_ptr<run_log> log_;
  std::shared_ptr<notice_board> board_;
  actor_house house_{plan_->clock};
  coordinator_peers actors_;
  coordinator_actor coordinator_;
};

void company::equip_ranks() {
  for (int rank = 0; rank < plan_->ranks(); ++rank) {
    ranks_.push_back(std::make_unique<rank_resources>(*plan_, rank));
    const auto of_data = static_cast<std::size_t>(rank / plan_->tensor / stages());
    ranks_.back()->computer =
      make_device(plan_->slowdowns.empty() ? 1 : plan_->slowdowns[of_data],
                  real() ? &watch_.device_of(rank) : nullptr);
  }
}

/// \param seen null in virtual time
std::unique_ptr<device> company::make_device(double slowdown, occupation* seen) {
  if (seen != nullptr)
    return std::make_unique<cpu_device>(*seen, actor_pool::hand_over);
  if (slowdown == 1)
    return std::make_unique<virtual_device>(virtual_clock_, plan_->cost);
  return std::make_unique<virtual_device>(
    virtual_clock_, [cost = plan_->cost, slowdown](const work& what) {
      return static_cast<nanoseconds>(
        std::llround(static_cast<double>(cost(what)) * slowdown));
    });
}

void company::equip_stages() {
  data_.resize(static_cast<std::size_t>(pipelines()));
  tensors_.resize(static_cast<std::size_t>(pipelines() * stages()));
  optimizers_.resize(static_cast<std::size_t>(plan_->data * plan_->tensor * stages()));
  shared_.resize(optimizers_.size());
  if (!plan_->work)
    return;
  for (int r = 0; r < pipelines(); ++r) {
    data_[static_cast<std::size_t>(r)] = std::make_shared<data_pools>(
      *plan_, at(r, 0), rank_of_stage(at(r, 0)).memory.of(memory_use::activations));
    std::shared_ptr<pool> below;
    for (int s = 0; s < stages(); ++s) {
      auto& rank = rank_of_stage(at(r, s));
      std::shared_ptr<pool> above;
      if (s + 1 < stages())
        above = boundary_pool(*plan_, at(r, s), rank.memory);
      tensors_[index(at(r, s))] = std::make_shared<stage_tensors>(
        *plan_, at(r, s), rank.memory, rank.threads, below, above);
      below = above;
    }
  }
  for_each_shard([this](position where) { equip_optimizer(where); });
}

void company::equip_optimizer(position where) {
  const auto& work = *plan_->work;
  auto& uses = rank_of_stage(where).memory;
  auto& passing = uses.of(memory_use::passing);
  auto& memory = optimizers_[shard_index(where)];
  memory.state = std::make_shared<optimizer>(
    work.optimizer, plan_->layers_of(where), work.batch * plan_->dims.steps,
    uses.of(memory_use::optimizer), plan_->state_share_of(where),
    plan_->extent_of(shared_out::gradients),
    has_servers() ? bucket_extent::share : plan_->extent_of(shared_out::parameters));
  if (plan_->sums_at_update())
    memory.sums =
      std::make_shared<exchange_pools>(*plan_, where, exchange_step::sum, passing);
  if (plan_->gathers_at_update())
    memory.gathers =
      std::make_shared<exchange_pools>(*plan_, where, exchange_step::gather, passing);
}

void company::equip_experts() {
  exchanges_.resize(tensors_.size());
  for (int rank = 0; rank < plan_->ranks(); ++rank)
    for (int on_rank = 0; const auto& where : plan_->hosted_by(rank)) {
      const auto all = plan_->experts_of(where.stage);
      if (all.empty())
        continue;
      auto& resources = rank_of_stage(where);
      exchanges_[index(where)] =
        std::make_shared<expert_exchange>(*plan_, where, tensors_[index(where)].get(),
                                          &resources.memory.of(memory_use::passing));
      const int stashes = plan_->work ? pools_of(*plan_, where).stashes : 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (plan_->host_of(all[i], where) != where)
          continue;
        expert_at_[{index(where), all[i]}] = experts_.size();
        experts_.push_back({where, all[i], static_cast<int>(i), on_rank++, nullptr});
        if (plan_->work)
          experts_.back().tensors = std::make_shared<expert_tensors>(
            *plan_, where, all[i], stashes, resources.memory, resources.threads);
      }
    }
}

/// What data replicas update one by one: a server's share, or the first replica's.
void company::equip_exchange(position where) {
  if (shared_parameters::are_at(*plan_, where))
    shared_[shard_index(where)] = std::make_shared<shared_parameters>(
      *plan_, where,
      plan_->work ? &rank_of_stage(where).memory.of(memory_use::parameters) : nullptr);
  if (!has_servers())
    optimizers_[shard_index(where)].parameters =
      shared_[shard_index({0, 0, where.stage, where.tensor})];
}

void company::spawn() {
  auto& system = house_.system();
  coordinator_ = system.spawn(coordinator, shared(), board_);
  actors_.recorder = system.spawn(recorder, shared(), log_, board_);
  for (int rank = 0; rank < plan_->ranks(); ++rank)
    actors_.schedulers.push_back(
      system.spawn(scheduler, shared(), rank,
                   ranks_[static_cast<std::size_t>(rank)]->computer->depth()));
  for (int r = 0; r < pipelines(); ++r)
    for (int s = 0; s < stages(); ++s)
      actors_.stages.push_back(
        system.spawn(stage, shared(), rank_of_stage(at(r, s)).computer.get(), at(r, s),
                     tensors_[index(at(r, s))], exchanges_[index(at(r, s))]));
  for (const auto& e : experts_)
    actors_.experts.push_back(system.spawn(expert, shared(),
                                           rank_of_stage(e.host).computer.get(), e.host,
                                           e.number, e.in_stage, e.on_rank, e.tensors));
  for_each_shard([&](position where) {
    std::vector<device*> computers;
    for (int r = 0; r < directions(); ++r)
      computers.push_back(
        rank_of_stage({where.data, r, where.stage, where.tensor}).computer.get());
    auto memory = optimizers_[shard_index(where)];
    if (has_servers())
      actors_.servers.push_back(system.spawn(
        parameter_server, shared(), where,
        std::shared_ptr<device>{
          make_device(1, real() ? &watch_.device_of_server(where) : nullptr)},
        server_memory{shared_[shard_index(where)], std::move(memory.state)}));
    actors_.shards.push_back(
      system.spawn(optimizer_shard, shared(), where, computers, std::move(memory)));
  });
  for (int r = 0; r < pipelines(); ++r)
    actors_.data.push_back(system.spawn(
      data_source, shared(), at(r, 0), data_[static_cast<std::size_t>(r)],
      actors_.stages[index(at(r, 0))], actors_.stages[index(at(r, stages() - 1))],
      coordinator_, real() ? &watch_.reader_of(at(r, 0)) : nullptr));
}

// The coordinator first: it must hear of whoever fails. First stages last: they begin.
void company::wire() {
  post(meter_, coordinator_, actors_);
  known_groups<optimizer_shard_actor> optimizers;
  known_groups<parameter_server_actor> servers;
  for_each_shard([&](position where) { wire_optimizer(where, optimizers, servers); });

  for (int rank = 0; rank < plan_->ranks(); ++rank) {
    scheduler_peers peers{{}, {}, actors_.recorder, coordinator_};
    for (const auto& where : plan_->hosted_by(rank))
      peers.stages.push_back(actors_.stages[index(where)]);
    for (std::size_t i = 0; i < experts_.size(); ++i)
      if (plan_->rank_of(experts_[i].host) == rank)
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
void company::wire_experts(position where, stage_peers& peers) {
  for (const int number : plan_->experts_of(where.stage)) {
    const auto host = plan_->host_of(number, where);
    const auto& actor = actors_.experts[expert_at_.at({index(host), number})];
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

void company::wire_optimizer(position where,
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

void company::report_now_and_then() {
  const auto now = std::chrono::steady_clock::now();
  if (plan_->report && now - last_report_ >= 100ms) {
    last_report_ = now;
    plan_->report(board_->latest());
  }
}

void company::evaluate(const notice_board::snapshot& parts) {
  const whole_weights all{*plan_, parts};
  plan_->evaluate(parts.front().batches, all.buckets());
  ++evaluated_;
}

void company::wait_for_news() {
  const run_watch::waiting counted{watch_};
  board_->wait(20ms);
  if (house_.broken())
    board_->post_failure("out of memory");
}

/// Makes all schedulers grant nothing more, and waits until nothing runs; false if the
/// run failed meanwhile.
bool company::rest() {
  post(meter_, coordinator_, mail::hold{});
  for (;;) {
    house_.settle();
    if (board_->failure())
      return false;
    if (board_->take_held())
      return true;
    if (real())
      wait_for_news();
    else
      virtual_clock_.step();
  }
}

/// Makes a run that is interrupted end as if it were to end at an update that is near:
/// all stages go on until they have made it.
void company::stop_if_interrupted() {
  const bool interrupted = plan_->interrupted != nullptr && plan_->interrupted->load();
  if (interrupted && !std::exchange(stopping_, true))
    post(meter_, coordinator_, mail::stop{});
}

// The clock of virtual time stands still by itself.
void company::serve_snapshots() {
  auto parts = board_->take_snapshot();
  if (!parts)
    return;
  if (stopping_) { // nobody asks for it any more, but ranks wait for copies
    for (; parts; parts = board_->take_snapshot())
      ++evaluated_;
    post(meter_, coordinator_, mail::proceed{evaluated_});
  } else if (!real() || rest()) {
    wall_clock_.pause();
    for (; parts; parts = board_->take_snapshot())
      evaluate(*parts);
    wall_clock_.resume();
    post(meter_, coordinator_, mail::proceed{evaluated_});
  }
}

void company::wait_in_real_time() {
  while (!board_->finished() && !board_->failure()) {
    stop_if_interrupted();
    wait_for_news();
    serve_snapshots();
    report_now_and_then();
  }
}

void company::wait_in_virtual_time() {
  for (;;) {
    stop_if_interrupted();
    house_.settle();
    if (board_->take_news()) {
      if (board_->failure())
        return;
      serve_snapshots();
    }
    report_now_and_then();
    if (board_->finished())
      return;
    if (virtual_clock_.step())
      continue;
    post(meter_, coordinator_, mail::explain{});
    house_.settle();
    board_->post_failure("the run has stalled: nothing runs and no event is pending; "
                         + describe_stall(board_->explanations()));
    return;
  }
}

/// What the stages have in the end; nothing if the run fails meanwhile.
std::vector<mail::collected> company::collect() {
  post(meter_, coordinator_, mail::collect{});
  house_.settle();
  auto all = board_->take_collected();
  while (!all && !board_->failure()) {
    if (!real()) {
      board_->post_failure("the run has ended, and not all stages give their weights");
      break;
    }
    wait_for_news();
    all = board_->take_collected();
  }
  return all.value_or(std::vector<mail::collected>{});
}

/// Tells everybody to end.
void company::dismiss() {
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

/// Whether somebody who has been told to end never will.
bool company::is_lost(int looks) {
  constexpr int stuck = 100, lost = 4000; // looks of milliseconds
  return house_.broken() || looks >= lost
         || (looks >= stuck && watch_.somebody_is_stuck());
}

/// Ends everybody, and the house if that succeeds.
void company::come_home() {
  constexpr int often = 64; // so often memory for a message may have run out
  watch_.end();
  virtual_clock_.clear(); // messages on their way hold buffers of pools
  interconnect_.clear();
  const run_watch::waiting counted{watch_};
  for (int looks = 0; house_.actors() > 0 && !at_work_; ++looks) {
    try {
      if (looks % often == 0)
        dismiss();
      house_.settle();
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch)
    }
    at_work_ = is_lost(looks);
    if (house_.actors() > 0)
      std::this_thread::sleep_for(std::min(looks * 50us, 5000us));
  }
  if (at_work_)
    return;
  actors_ = coordinator_peers{};
  coordinator_ = coordinator_actor{};
  house_.close();
}

run_result company::result_so_far() {
  run_result result;
  result.sums = measures_of(log_->sums, stages());
  if (const auto modelled = log_->modelled(board_->finished() && !stopping_)) {
    result.sums.makespan = modelled->makespan;
    result.sums.busy = modelled->busy;
    result.sums.span_idle = modelled->span_idle;
  }
  result.loads = std::move(log_->loads);
  result.actions = std::move(log_->actions);
  result.actions_cut = log_->cut;
  result.loss = log_->losses.losses();
  result.loss_samples = log_->losses.samples();
  result.loss_every = log_->losses.every();
  result.samples = result.loss_samples.empty() ? 0 : result.loss_samples.back();
  if (!plan_->updates_are_by(update_by::all)) {
    result.exchange = measures_of(shared_, stages());
    if (plan_->keep_record)
      result.accesses = history_of(shared_);
  }
  for (const auto& rank : ranks_) {
    if (plan_->work) {
      result.peak_bytes.push_back(rank->memory.all().peak());
      auto& parts = result.peak_parts.emplace_back();
      for (int use = 0; use < memory_uses; ++use)
        parts[static_cast<std::size_t>(use)] =
          rank->memory.of(static_cast<memory_use>(use)).peak();
      result.reserved_bytes.push_back(rank->memory.all().reserved());
    }
    result.late_allocations += rank->memory.all().allocations();
  }
  result.late_allocations -= allocations_at_start_;
  result.envelopes = meter_.total();
  result.most_envelopes = meter_.most_at_once();
  for (int kind = 0; kind < traffic_kinds; ++kind)
    result.bytes_moved[static_cast<std::size_t>(kind)] =
      meter_.bytes(static_cast<traffic>(kind));
  return result;
}

/// Another thread, for answers: all others may be at work that never ends.
void company::help() {
  try {
    house_.start_threads(1);
  } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
  }
}

/// From the first message to the last.
void company::play() {
  wall_clock_.restart();
  spawn();
  wire();
  if (real()) {
    house_.start_threads(std::clamp(plan_->threads, 1, plan_->devices()));
    watch_.begin(
      *board_, [this] { post(meter_, coordinator_, mail::explain{}); },
      [this] { help(); });
    wait_in_real_time();
  } else {
    wait_in_virtual_time();
  }
  seconds_ = static_cast<double>(wall_clock_.now()) * 1e-9;
  if (board_->finished())
    serve_snapshots();
  if (plan_->keep_weights && !board_->failure())
    last_ = collect();
}

run_result company::run() {
  try {
    play();
  } catch (...) {
    come_home();
    throw;
  }
  come_home();
  auto failure = board_->failure();
  run_result result;
  try {
    if (!at_work_)
      result = result_so_far();
    else if (!failure)
      failure = "its actors could not be ended";
  } catch (
    const std::logic_error& wrong) { // weights are kept whatever is told of times
    if (!failure)
      failure = wrong.what();
  }
  if (auto torn = count_updates(*plan_, last_, result); !torn.empty()) {
    failure = failure.value_or(torn);
    last_.clear();
  }
  optimizers_.clear(); // nothing needs their memory any more
  if (!board_->failure() && !at_work_) {
    keep_weights(*plan_, std::move(last_), shared_, result);
    keep_versions(*plan_, std::move(log_->versions), result);
  }
  result.seconds = seconds_;
  if (failure)
    result.failure = *failure;
  result.how = failure     ? ending::failed
               : stopping_ ? ending::interrupted
                           : ending::finished;
  return result;
}

/// Those that could not be ended, the last one first. They are never destroyed.
std::atomic<company*> left_at_work = nullptr;

struct end_or_leave {
  void operator()(company* ended) const {
    if (!ended->at_work())
      delete ended;
    else
      ended->left_before = left_at_work.exchange(ended);
  }
};

} // namespace

run_result perform(run_plan plan) {
  const std::unique_ptr<company, end_or_leave> all{new company{std::move(plan)}};
  return all->run();
}

bool is_at_work() {
  return left_at_work.load() != nullptr;
}

} // namespace troupe
