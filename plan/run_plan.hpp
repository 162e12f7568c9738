// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/launch_times.hpp"
#include "messaging/position.hpp"
#include "messaging/record.hpp"
#include "messaging/replica_exchange.hpp"
#include "models/batching.hpp"
#include "plan/mesh.hpp"
#include "plan/run_machine.hpp"
#include "plan/user_exchange.hpp"
#include "plan/workload.hpp"
#include "schedules/bounds.hpp"
#include "schedules/schedule.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// The plan of a run as a value: schedule, mesh, work, machine, and which results the
// run keeps. Layers and buckets of a stage are in stage_layers.hpp, shares of data
// replicas in sharding.hpp.

namespace troupe {

/// Results that a run keeps for the caller.
struct kept_results {
  /// Keeps every action, for proofs. If false, keeps only sums over actions, and the
  /// actions of `first_actions`.
  bool record = false;
  /// Number of first actions of each rank that a run without a record keeps, for a
  /// trace.
  std::int64_t first_actions = 0;
  bool weights = false;   ///< Keeps the parameters at the end.
  bool gradients = false; ///< With `weights`: also keeps the last gradients.
  /// Keeps parameters and gradients of every update, for proofs.
  bool versions = false;
};

/// Measurements of a run that the caller receives while the run lasts.
struct observation {
  bool watched = false; ///< Actions are reported to an observer during the run.
  /// Computes times as if each rank had a device of its own.
  bool model_times = false;
  /// Receives launch times of rank 0, if that rank is on a GPU; null if launches are
  /// not recorded.
  std::shared_ptr<launch_times> launches = nullptr;
  /// Receives measured choices of algorithms for the products of rank 0, if that rank
  /// is on a GPU; null if nothing is measured.
  std::shared_ptr<cuda::product_choices> choices = nullptr;
};

/// When stages copy their state. Batches are counted with the batches before the run.
struct state_copies {
  int evaluate_every = 0;   ///< Batches between two evaluations. 0: no evaluations.
  int checkpoint_every = 0; ///< Batches between two checkpoints. 0: no checkpoints.
  /// Every stage keeps copies of its state after the last two batches: see
  /// pause_every().
  bool keep_steps = false;

  /// Batches between two pauses of all ranks; 0: no pauses. In a pause each stage
  /// copies parameters and optimizer state.
  int pause_every() const { return keep_steps ? 1 : checkpoint_every; }
};

/// A run: the work, the schedule that orders the work, and the machine. A value without
/// actors; threads may share a constant plan.
struct run_plan {
  schedule sch;
  /// Sizes of one data replica, with the replica's share of a batch's microbatches.
  shape dims;
  /// Sizes along the axes that the schedule does not decide: data replicas in all,
  /// neighbours among these that divide experts, and tensor shards. The size along
  /// axis::pipe stays 1; ranks_of_pipeline() has the ranks of a pipeline.
  mesh_sizes mesh = {};
  bool sequence_parallel = false; ///< Tensor shards also divide the positions of
                                  ///< sequences.

  /// Units (blocks or layers) of a segment, if the schedule recomputes. A stage
  /// recomputes one segment at a time, and stores the input of each segment. 0: the
  /// whole stage is one segment.
  int recomputed_units = 0;

  /// The rules by which data replicas keep one model. Present if the plan has several
  /// data replicas.
  std::optional<replica_exchange> exchange = {};

  /// Makes the meetings that the user provides in place of the exchange's sum; empty if
  /// the user provides none.
  exchange_maker user_exchange = {};

  run_work work = {}; ///< A training, or the sizes of a simulation's messages.

  /// Microbatches of a batch, over all data replicas, if sizes or lengths differ; else
  /// null. In a simulation, samples and lengths give each microbatch's cost relative to
  /// the largest.
  std::shared_ptr<const uneven_microbatches> uneven = nullptr;

  /// True if relays (actors that the user provides) forward messages between stages. A
  /// relay may still hold a message after forwarding that message.
  bool has_relays = false;

  run_machine machine = {};
  kept_results keep = {};
  observation observed = {};
  state_copies copies = {};

  bool recomputes() const { return sch.recomputes != recomputation::none; }

  /// Number of pipelines: one for each data replica and each direction of the schedule.
  int replicas() const { return mesh[axis::data] * directions_of(sch.where); }
  int ranks() const {
    return mesh[axis::data] * ranks_of_pipeline() * mesh[axis::tensor];
  }
  int ranks_of_pipeline() const { return ranks_of(sch.where, dims); }

  /// Index of a stage's pipeline, from 0 to replicas() - 1. All tensor shards of a
  /// stage have the same index.
  int replica_at(position p) const {
    return p.data * directions_of(sch.where) + p.direction;
  }

  /// True if the last stage at `p` reports the loss. All tensor shards compute the same
  /// loss, and shard 0 reports that loss.
  /// \pre `p` is the last stage
  bool reports_loss(position p) const { return p.tensor == 0; }

  // Names for errors and reports.
  std::string name_of(position p) const;
  std::string optimizer_of(position p) const;
  std::string server_of(position p) const;
  std::string source_of(position p) const;

  /// Directions of the schedule. The same stage of all directions has one optimizer
  /// shard.
  int directions() const { return directions_of(sch.where); }

  /// The ranks by position along each axis. Of N data replicas that divide experts in
  /// groups of E, axis::data has size N / E.
  /// \pre the plan is valid (validation_error())
  rank_mesh ranks_by_axis() const;

  // A rank's data replica, rank within the pipeline (the rank of programs), and tensor
  // shard.
  int data_of(int rank) const {
    return rank / mesh[axis::tensor] / ranks_of_pipeline();
  }
  int pipe_rank(int rank) const {
    return rank / mesh[axis::tensor] % ranks_of_pipeline();
  }
  int shard_of(int rank) const { return rank % mesh[axis::tensor]; }

  /// The rank that hosts a stage.
  int rank_of(position p) const;

  /// Upper bounds on a stage's memory, by its schedule.
  stage_bounds bounds_of(hosted_stage where) const;

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
