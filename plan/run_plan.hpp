// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/launch_times.hpp"
#include "kernels/processor.hpp"
#include "kernels/virtual_clock.hpp"
#include "messaging/interconnect.hpp"
#include "messaging/position.hpp"
#include "messaging/record.hpp"
#include "messaging/replica_exchange.hpp"
#include "models/batching.hpp"
#include "models/bucket_share.hpp"
#include "models/slices_by_length.hpp"
#include "plan/layout.hpp"
#include "plan/user_exchange.hpp"
#include "plan/workload.hpp"
#include "schedules/bounds.hpp"
#include "schedules/schedule.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// The plan of a run as a value: schedule, mesh, work, machine, and which results the
// run keeps.

namespace troupe {

enum class clock_kind : std::uint8_t { real, virtual_time };

/// A run: the work, the schedule that orders the work, and the clock. A value without
/// actors; threads may share a constant plan.
struct run_plan {
  schedule sch;
  /// Sizes of one data replica, with the replica's share of a batch's microbatches.
  shape dims;

  // The mesh.
  int data = 1;   ///< Replicas of the whole pipeline; each has a share of every batch.
  int tensor = 1; ///< Shards of every layer.
  /// Number of neighbouring data replicas that divide a layer's experts.
  int expert = 1;
  bool sequence_parallel = false; ///< Tensor shards also divide the positions of
                                  ///< sequences.

  /// Units (blocks or layers) of a segment, if the schedule recomputes. A stage
  /// recomputes one segment at a time, and stores the input of each segment. 0: the
  /// whole stage is one segment.
  int recomputed_units = 0;

  /// The rules by which data replicas keep one model. Present if `data` is above 1.
  std::optional<replica_exchange> exchange = {};

  /// Makes the meetings that the user provides in place of the exchange's sum; empty if
  /// the user provides none.
  exchange_maker user_exchange = {};

  std::optional<training> work; ///< The training; absent from a simulation.

  /// Microbatches of a batch, over all data replicas, if sizes or lengths differ; else
  /// null. In a simulation, samples and lengths give each microbatch's cost relative to
  /// the largest.
  std::shared_ptr<const uneven_microbatches> uneven = nullptr;

  clock_kind clock = clock_kind::real;
  cost_model cost;        ///< Durations of actions in virtual time.
  machine_model machines; ///< Durations of messages in virtual time.
  simulated_sizes sizes;  ///< Sizes of messages in a simulation without arithmetic.
  /// Bytes per second that a rank adds in virtual time, in collectives and for tied
  /// matrices. 0: sums take no time.
  double sum_rate = 0;
  int threads = 1; ///< Compute threads of all ranks together, in real time.
  /// True if relays (actors that the user provides) forward messages between stages. A
  /// relay may still hold a message after forwarding that message.
  bool has_relays = false;
  /// Processors of ranks: rank r has entry r modulo the size. Empty: the CPU.
  std::vector<processor> processors;

  /// Factors of `cost`, one per data replica, in virtual time. Empty: all factors are
  /// 1.
  std::vector<double> slowdowns;

  // Results that a run keeps for its caller, and how the run is observed.
  /// Keeps every action, for proofs. If false, keeps only sums over actions, and the
  /// actions of `keep_first`.
  bool keep_record = false;
  /// Number of first actions of each rank that a run without a record keeps, for a
  /// trace.
  std::int64_t keep_first = 0;
  bool watched = false;        ///< Actions are reported to an observer during the run.
  bool keep_weights = false;   ///< Keeps the parameters at the end.
  bool keep_gradients = false; ///< With keep_weights: also keeps the last gradients.
  /// Keeps parameters and gradients of every update, for proofs.
  bool keep_versions = false;
  /// Computes times as if each rank had a device of its own.
  bool model_times = false;
  /// Every stage keeps copies of its state after the last two batches: see
  /// pause_every().
  bool keep_steps = false;
  /// Receives launch times of rank 0, if that rank is on a GPU; null if launches are
  /// not recorded.
  std::shared_ptr<launch_times> launches = nullptr;
  /// Receives measured choices of algorithms for the products of rank 0, if that rank
  /// is on a GPU; null if nothing is measured.
  std::shared_ptr<cuda::product_choices> choices = nullptr;
  /// Batches between two evaluations, counted with the batches before the run. 0: no
  /// evaluations.
  int evaluate_every = 0;
  /// Batches between two checkpoints, counted with the batches before the run. 0: no
  /// checkpoints.
  int checkpoint_every = 0;
  /// In real time, the run fails if no action ends for this long, unless an action
  /// under way may take longer (actors/run/stall.hpp).
  std::chrono::milliseconds stall_timeout{10'000};

  /// Batches between two pauses of all ranks; 0: no pauses. In a pause each stage
  /// copies parameters and optimizer state.
  int pause_every() const { return keep_steps ? 1 : checkpoint_every; }

  bool recomputes() const { return sch.recomputes != recomputation::none; }

  /// True if each rank has a virtual device for sums of messages, beside the device for
  /// passes. If false, the actor that needs a sum computes the sum immediately. Sums of
  /// a GPU group are work of the group in either case.
  bool sums_take_time() const {
    return clock == clock_kind::virtual_time && sum_rate > 0;
  }

  /// Number of pipelines: one for each data replica and each direction of the schedule.
  int replicas() const { return data * directions_of(sch.where); }
  int ranks() const { return data * ranks_of_pipeline() * tensor; }
  int ranks_of_pipeline() const { return ranks_of(sch.where, dims); }

  /// The processor that computes for a rank.
  processor processor_of(int rank) const {
    return processors.empty()
             ? processor{}
             : processors[static_cast<std::size_t>(rank) % processors.size()];
  }

  bool has_gpus() const { return std::ranges::any_of(processors, &processor::is_gpu); }

  /// Memory for a rank's tensors. Ranks of a process pass buffers to each other. So all
  /// tensors are in GPU-accessible memory if any rank is on a GPU.
  memory_space& memory_at(int rank) const {
    const auto local_processor = processor_of(rank);
    const auto gpu = std::ranges::find_if(processors, &processor::is_gpu);
    return memory_of(
      local_processor.is_gpu() || gpu == processors.end() ? local_processor : *gpu);
  }

  /// Memory for samples and labels; no GPU writes there.
  memory_space& memory_for_samples() const {
    const auto gpu = std::ranges::find_if(processors, &processor::is_gpu);
    return gpu == processors.end() ? host_memory() : memory_of_samples(*gpu);
  }

  /// True if some ranks are on the CPU and others on GPUs. Bits differ between the two.
  bool mixes_processors() const {
    for (int rank = 1; rank < ranks(); ++rank)
      if (processor_of(rank).is_gpu() != processor_of(0).is_gpu())
        return true;
    return false;
  }

  /// Number of devices that compute at the same time: one per rank, and with parameter
  /// servers one more per rank.
  int devices() const {
    return updates_are_by(update_by::servers) ? 2 * ranks() : ranks();
  }

  /// Index of a stage's pipeline, from 0 to replicas() - 1. All tensor shards of a
  /// stage have the same index.
  int replica_at(position p) const {
    return p.data * directions_of(sch.where) + p.direction;
  }

  /// True if the last stage at `p` reports the loss. All tensor shards compute the same
  /// loss, and shard 0 reports that loss.
  /// \pre `p` is the last stage
  bool reports_loss(position p) const { return p.tensor == 0; }

  /// True if an evaluation reads the parameters of `p`. An evaluation needs each
  /// parameter once: from direction 0 of as many data replicas as hold one model.
  bool in_snapshot(position p) const {
    return p.direction == 0 && p.data < data_in_snapshot();
  }

  /// Number of data replicas that together hold one model.
  int data_in_snapshot() const {
    return shares_out(shared_out::parameters) ? data : expert;
  }

  // Names for errors and reports.
  std::string name_of(position p) const;
  std::string optimizer_of(position p) const;
  std::string server_of(position p) const;
  std::string source_of(position p) const;

  /// True if each data replica holds a share of `tensors`, not all.
  bool shares_out(shared_out tensors) const {
    return data > 1 && exchange->shares >= tensors;
  }

  bool updates_are_by(update_by updater) const {
    return updater == (data > 1 ? exchange->updates : update_by::all_replicas);
  }

  /// True if `p` holds parameters that data replicas update one by one. Such parameters
  /// are at every server, or with Hogwild at data replica 0 for all replicas.
  bool has_shared_parameters(position p) const {
    return updates_are_by(update_by::servers)
           || (updates_are_by(update_by::itself) && p.data == 0);
  }

  /// True if all data replicas end with equal versions. Servers with a staleness of 0
  /// answer all replicas with the same values. A user's exchange must give all replicas
  /// equal gradients.
  bool replicas_agree() const {
    return updates_are_by(update_by::all_replicas) || exchange->staleness == 0;
  }

  /// Number of data replicas or parameter servers that divide a stage's optimizer
  /// state; 1 if none do.
  int state_shares() const {
    return updates_are_by(update_by::servers) || shares_out(shared_out::optimizer_state)
             ? data
             : 1;
  }

  /// The share of each bucket whose optimizer state is at `p`. The stage's optimizer
  /// shard or a parameter server holds that state.
  bucket_shares state_shares_of(position p) const;

  /// Number of parameter values in all shares of `state_shares_of(p)`, over all buckets
  /// of a stage.
  std::int64_t state_values_of(position p) const;

  /// The share of each bucket that the stage's optimizer shard updates: the whole
  /// bucket without ZeRO. Only the data replicas that sum a bucket divide that bucket.
  bucket_shares shares_of(position p) const;

  /// True if data replicas exchange gradients once per update. False for ZeRO 2 and 3,
  /// where every backward sums gradients over replicas. False also where an update is
  /// of one replica's gradients.
  bool exchanges_at_update() const {
    return data > 1 && updates_are_by(update_by::all_replicas)
           && !shares_out(shared_out::gradients);
  }

  /// True if data replicas exchange gradients once per update by sums, not by a meeting
  /// that the user provides.
  bool sums_at_update() const { return exchanges_at_update() && !user_exchange; }

  /// Directions of the schedule. The same stage of all directions has one optimizer
  /// shard.
  int directions() const { return directions_of(sch.where); }

  /// True if optimizer shards are notified of each bucket with complete gradients.
  bool reports_buckets() const { return sums_at_update() || directions() > 1; }

  /// True if the notification comes as soon as a backward has completed the bucket. If
  /// false, the notification comes when the update starts.
  /// \pre reports_buckets()
  bool reports_immediately() const {
    return directions() > 1 ? sch.eager && !shares_out(shared_out::gradients)
                            : sums_at_update();
  }

  /// True if data replicas gather the parameters once per update. If false, replicas
  /// gather before every use, or never.
  bool gathers_at_update() const {
    return shares_out(shared_out::optimizer_state)
           && !shares_out(shared_out::parameters);
  }

  /// Extent of the arrays of `tensors` that a stage holds: whole buckets, or shares of
  /// buckets.
  bucket_extent extent_of(shared_out tensors) const {
    return shares_out(tensors) ? bucket_extent::share : bucket_extent::whole;
  }

  /// True if older versions store the matrices of products as bf16. This requires a run
  /// that stores bf16 and stages that hold whole parameters: a share of a bucket may
  /// begin within a matrix.
  bool rounds_older_versions() const {
    return work && work->whole.options.stored == precision::bf16
           && !shares_out(shared_out::parameters);
  }

  /// True if matrices stay packed for bf16 products: the run stores bf16, several
  /// microbatches of a direction read a version, and stages hold whole parameters.
  bool keeps_packed_weights() const {
    return rounds_older_versions() && update_size(sch, dims) > directions();
  }

  /// Number of values that a stage holds of each bucket of `tensors`: all, or a share.
  std::vector<std::int64_t> held_of(shared_out tensors, position p) const;

  /// The optimizer shards whose gradients the norm at `p` covers, in the order in which
  /// squares are summed. The first of these shards sums the squares.
  /// \pre `work` is present, and the optimizer clips
  std::vector<position> norm_group(position p) const;

  /// The network whose layers the stage at `p` runs: the whole, a tensor shard's, or
  /// the network without experts. Owned by the plan.
  /// \pre `work` is present
  const network<float>& network_of(position p) const;

  /// The layers that a stage runs, for sequences of the network's full length.
  /// \param team_size threads of the streams that compute the passes
  /// \pre `work` is present
  slice<float> slice_of(position p, int team_size = 1) const;

  /// The layers that a stage runs, for the sequence lengths of all microbatches.
  /// \param team_size as for slice_of()
  /// \pre `work` is present
  slices_by_length<float> slices_of(position p, int team_size = 1) const;

  /// Values per sample that a stage receives from the stage before; 0 for the first
  /// stage. Two values of bf16 count as one.
  /// \param length tokens of the sample's sequence, as given by batches(); 0: full
  /// length
  /// \pre `work` is present
  std::int64_t values_below(position p, std::int64_t length) const;

  /// First layers of the segments that a stage recomputes, as indexes among the stage's
  /// layers. Only 0 without recomputation, or if the whole stage is one segment. In a
  /// simulation: indexes among the stage's buckets.
  std::vector<int> segments_of(int stage) const;

  /// Floating-point operations of a stage's forward, including experts, for one sample
  /// of the network's full length.
  /// \pre `work` is present
  double operations_of(int stage) const;

  /// The experts of a stage's layers, as indexes into the network's list. In a
  /// simulation a stage has one layer, with one expert on each of `expert` data
  /// replicas. Empty in a simulation if `expert` is 1.
  std::vector<int> experts_of(int stage) const;

  /// True if passes of a stage have meetings between pieces: with tensor shards, with
  /// data replicas that divide the layers, or with experts.
  bool passes_meet(int stage) const {
    return tensor > 1 || shares_out(shared_out::gradients)
           || !experts_of(stage).empty();
  }

  /// True if a tensor between the stage at `lower` and the next stage is sent at
  /// launch, provided that both stages are in one process. This needs GPUs for both
  /// stages, as streams of GPUs wait for each other. False for local rules, which
  /// choose by arrivals. False if passes of either stage have meetings, as actors move
  /// the arrays of meetings. False in a simulation, in virtual time, and with relays.
  /// \pre `lower` is not the last stage
  bool leaves_at_launch(position lower) const;

  /// Position of the stage that hosts an expert, among the stages that the stage at `p`
  /// sends rows to.
  /// \param expert index in the network's list of experts
  position host_of(int expert, position p) const;
  std::string name_of_expert(int expert, position host) const;

  /// The buckets of a stage: for each layer the layer's own bucket, then the buckets of
  /// experts that are hosted at `p`.
  /// \pre `work` is present
  std::vector<layer_bucket> layer_buckets(position p) const;
  layer_list<float> layers_of(position p) const;

  /// Number of fp32 values of each bucket of a stage. In a simulation derived from
  /// `sizes`; each bucket then has at least as many values as there are data replicas.
  std::vector<std::int64_t> buckets_of(position p) const;

  /// The data replicas that sum each bucket. For an expert's bucket: the replicas that
  /// host that expert.
  std::vector<bucket_group> groups_of(position p) const;

  // A rank's data replica, rank within the pipeline (the rank of programs), and tensor
  // shard.
  int data_of(int rank) const { return rank / tensor / ranks_of_pipeline(); }
  int pipe_rank(int rank) const { return rank / tensor % ranks_of_pipeline(); }
  int shard_of(int rank) const { return rank % tensor; }

  /// The rank that hosts a stage.
  int rank_of(position p) const;

  /// Upper bounds on a stage's memory, by its schedule.
  stage_bounds bounds_of(hosted_stage where) const;

  /// Number of copies of a stage's parameters that evaluations may need at the same
  /// time; 0 if no evaluation reads the stage. Evaluations need two copies, and one
  /// more for each whole batch of microbatches that stage 0 stashes.
  int snapshots_of(position p) const;

  /// Group number of a rank. Ranks of one group end after the same update when a run is
  /// interrupted. All ranks form group 0. If no data replica waits for another, the
  /// ranks of each data replica form a group instead, with the replica's index.
  int stops_with(int rank) const;

  /// The stages that a rank hosts, sorted by stage, then direction.
  std::vector<position> hosted_by(int rank) const;

  /// Batches of the samples of all data replicas. In a simulation a microbatch counts
  /// as one sample, unless `uneven` gives sizes.
  batching batches() const;

  /// Index of a data replica's microbatch among the microbatches of all replicas. Both
  /// indexes count over the run from 0. Each replica has an equal contiguous share of a
  /// batch.
  int microbatch_of_all(int of_data, int microbatch) const;

  std::int64_t samples_of(int of_data, int microbatch) const {
    return batches().samples_of(microbatch_of_all(of_data, microbatch));
  }
  std::int64_t length_of(int of_data, int microbatch) const {
    return batches().length_of(microbatch_of_all(of_data, microbatch));
  }

  /// Tokens in a microbatch, divided by the tokens of the largest microbatch of a
  /// batch. 1 if `uneven` is null.
  double part_of_largest(int of_data, int microbatch) const;
};

/// Every rank of a run, in increasing order.
std::vector<int> all_ranks(const run_plan& plan);

} // namespace troupe
