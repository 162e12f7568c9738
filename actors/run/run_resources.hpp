// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/experts/expert_work.hpp"
#include "actors/pipeline/data_source.hpp"
#include "actors/pipeline/stage_channels.hpp"
#include "actors/pipeline/stage_meetings.hpp"
#include "actors/pipeline/stage_saver.hpp"
#include "actors/pipeline/stage_work.hpp"
#include "actors/rank/performer_port.hpp"
#include "actors/rank/rank_memory.hpp"
#include "actors/run/gpu_groups.hpp"
#include "actors/run/run_monitor.hpp"
#include "actors/updates/optimizer_core.hpp"
#include "kernels/cpu_device.hpp"
#include "kernels/virtual_clock.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_indexing.hpp"
#include "plan/stage_pools.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

/// The device of one rank, with the rank's memory and stream. run_resources owns each
/// object and sets the devices.
struct rank_resources {
  rank_resources(const run_plan& plan, int rank)
    : memory(plan.machine.memory_at(rank)),
      main_stream(
        stream_on(plan.machine.processor_of(rank), team_size(plan, rank),
                  plan.work ? plan.work->whole.options.stored : precision::fp32)) {
    // nop
  }

  rank_memory memory;
  stream main_stream; ///< Runs arithmetic of stages, experts and optimizer shards.
  std::unique_ptr<device> computer;
  /// Runs sums of performers in virtual time, if the plan says that sums take time.
  /// Null if performers compute sums themselves.
  std::unique_ptr<device> sums;

  /// Pointers to the devices for a performer, valid as long as this object.
  performer_devices devices() const { return {{computer.get()}, sums.get()}; }
};

/// An expert and the stage that hosts it.
struct hosted_expert {
  position host;
  int number; ///< Index in the network's list of experts.
  std::shared_ptr<expert_work> work;
};

/// Makes a device in place of a virtual device.
using device_maker = std::function<std::unique_ptr<device>(virtual_clock&)>;

/// The devices, threads and tensors of the ranks of a run that are here: for stages,
/// optimizers and experts. Tensor memory is allocated when this object is made;
/// late_allocations() counts later allocations. Actors hold handles of the tensors, so
/// this object outlives all actors.
///
/// For a stage whose rank is elsewhere nothing exists here, and accessors without \pre
/// return null or empty values. The pool of messages between two stages belongs to the
/// lower stage's rank. If only one of the two ranks is here, the pool belongs to that
/// rank. With a peer channel between two stages, each rank has a pool.
class run_resources : private stage_indexing {
public:
  /// \param plan,clock,watch outlive this object; the clock is used in virtual time,
  /// the watch in real time
  /// \param local_ranks the ranks here
  /// \param make_virtual makes devices in virtual time; may be empty
  /// \param groups the run's groups of GPUs; ranks here may be members
  /// \param ended polled on this thread while GPUs of groups join, and may become true
  /// on another thread; true ends the wait; may be empty
  /// \throws std::bad_alloc, no_thread
  /// \throws std::runtime_error if GPUs of a group do not join
  /// \throws ended_while_joining if `ended` has returned true
  run_resources(const run_plan& plan, virtual_clock& clock, run_monitor& watch,
                const std::vector<int>& local_ranks,
                const device_maker& make_virtual = {}, const known_groups& groups = {},
                const std::function<bool()>& ended = {});

  /// Waits for the work under way.
  ~run_resources();
  run_resources(const run_resources&) = delete;
  run_resources& operator=(const run_resources&) = delete;

  /// Resources by rank; null where a rank is in another process.
  const std::vector<std::unique_ptr<rank_resources>>& ranks() const { return ranks_; }

  /// \pre the stage's rank is here
  rank_resources& rank_of_stage(position where) const {
    return *ranks_[static_cast<std::size_t>(plan_.rank_of(where))];
  }

  /// The buffers of a pipeline's samples, with the rank of the first stage; null in
  /// simulations.
  /// \param where any stage of the pipeline
  const std::shared_ptr<data_pools>& data_of(position where) const {
    return data_[index(where) / static_cast<std::size_t>(stages())];
  }

  /// The work of a stage; in a simulation, objects that compute nothing.
  const stage_work& work_of(position where) const { return work_[index(where)]; }

  /// The meetings of a stage.
  const std::shared_ptr<stage_meetings>& meetings_of(position where) const {
    return meetings_[index(where)];
  }

  /// The saver of a stage. Null in all directions but 0, as these have the parameters
  /// of direction 0. Also null in a simulation, and if the plan neither has checkpoints
  /// nor keeps steps.
  /// \pre release_optimizers() has not been called
  const std::shared_ptr<stage_saver>& saver_of(position where) const {
    return savers_[index(where)];
  }

  /// The stage's channels to neighbours on other GPUs, and the pools of messages
  /// between the stage and its neighbours.
  const channels_of_stage& channels_of(position where) const {
    return channels_[index(where)];
  }

  /// The memory of a stage's optimizer shard, which all directions share.
  /// \pre release_optimizers() has not been called
  const optimizer_memory& optimizer_of(position where) const {
    return optimizers_[shard_index(where)];
  }

  /// The parameters that each data replica updates without the others (Hogwild), or a
  /// parameter server's share. With Hogwild, data replica 0 has the parameters of all
  /// replicas. Null unless has_shared_parameters(plan, where).
  const std::shared_ptr<shared_parameters>& shared_of(position where) const {
    return shared_[shard_index(where)];
  }
  /// All objects that shared_of() returns, by shard_index().
  const all_shared_parameters& shared() const { return shared_; }

  /// The experts of all ranks here, in the order of ranks.
  const std::vector<hosted_expert>& experts() const { return experts_; }

  /// The device of a parameter server.
  /// \pre the plan has parameter servers, and the stage's rank is here
  device& server_device(position where) const {
    return *server_devices_[shard_index(where)];
  }

  /// Makes the hooks around the reads of a pipeline's data source; empty in virtual
  /// time. The hooks refer to the watch that the constructor received. Each call adds a
  /// reader to the watch.
  /// \param first the pipeline's first stage
  sample_reader reader_of(position first);

  /// Sets the function that device threads call when a work has ended
  /// (compute_threads). Does nothing in virtual time and in simulations, which have no
  /// device threads.
  /// \pre no work has begun
  void set_visit(decltype(compute_threads::visit) visit) {
    if (threads_)
      threads_->visit = std::move(visit);
  }

  /// Makes devices and GPU groups discard work that has not begun, and accept no more.
  /// Waits up to 50 ms for exchanges of GPU groups, then aborts the remaining ones.
  void stop();

  /// True if no device, GPU group or compute thread is at work.
  bool idle() const;

  /// Number of allocations of tensor memory, for ranks here, since the constructor
  /// ended.
  std::int64_t late_allocations() const { return allocations() - at_start_; }

  /// Frees the memory of optimizers and of savers, except buffers that an actor or a
  /// caller still holds.
  void release_optimizers() {
    savers_.clear();
    optimizers_.clear();
  }

private:
  bool real() const { return plan_.machine.clock == clock_kind::real; }
  bool has_servers() const { return updates_are_by(plan_, update_by::servers); }
  bool is_here(position where) const {
    return ranks_[static_cast<std::size_t>(plan_.rank_of(where))] != nullptr;
  }
  group_finder groups_of(position where);
  void make_rank(int rank);
  void make_stages();
  void make_meetings();
  void make_pipeline(int pipeline);
  peer_channels channels_between(position where, position neighbour,
                                 std::shared_ptr<pool> shared_pool);
  void make_optimizer(position where);
  void resume(optimizer& state, position where) const;
  void make_experts();
  void make_exchange(position where);
  std::vector<device*> devices() const;
  std::unique_ptr<device> make_device(double slowdown, occupation* seen, int threads,
                                      const stream* compute_stream = nullptr,
                                      launch_times* times = nullptr);
  std::unique_ptr<device> make_virtual_device(cost_model cost, double slowdown,
                                              const stream* compute_stream = nullptr);
  std::int64_t allocations() const;

  const run_plan& plan_;
  virtual_clock& clock_;
  run_monitor& watch_;
  device_maker make_virtual_;
  std::shared_ptr<compute_threads> threads_; // null where nothing is computed
  std::vector<std::unique_ptr<rank_resources>> ranks_;
  std::unique_ptr<gpu_groups> groups_;
  std::vector<std::unique_ptr<device>> server_devices_;   // by shard_index()
  std::vector<std::shared_ptr<data_pools>> data_;         // one for each pipeline
  std::vector<stage_work> work_;                          // by index()
  std::vector<channels_of_stage> channels_;               // by index()
  std::vector<std::shared_ptr<stage_meetings>> meetings_; // by index()
  std::vector<std::shared_ptr<stage_saver>> savers_;      // by index()
  std::vector<optimizer_memory> optimizers_;              // by shard_index()
  all_shared_parameters shared_;                          // by shard_index()
  std::vector<hosted_expert> experts_;                    // by rank
  std::int64_t at_start_ = 0; // allocations until the constructor's end
};

} // namespace troupe
