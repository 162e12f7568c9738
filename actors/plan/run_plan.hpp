// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/layout.hpp"
#include "actors/plan/own_exchange.hpp"
#include "actors/plan/workload.hpp"
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
#include "schedules/bounds.hpp"
#include "schedules/schedule.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

enum class clock_kind : std::uint8_t { real, virtual_time };

/// A run: what is computed, by which schedule, on which clock.
struct run_plan {
  schedule sch;
  shape dims; ///< Of one data replica: its share of a batch's microbatches.

  // The mesh.
  int data = 1;   ///< Replicas of the whole pipeline, each with a share of every batch.
  int tensor = 1; ///< Shards of every layer.
  int expert = 1; ///< Neighbouring data replicas that share a layer's experts out.
  bool sequence_parallel = false; ///< Tensor shards share out sequences' positions too.

  /// Blocks or layers that a stage recomputes at once, where the schedule recomputes:
  /// it keeps the input of each so many. 0: it keeps its own input alone.
  int recomputed_units = 0;

  /// How data replicas keep one model. Present if there are several.
  std::optional<replica_exchange> exchange = {};

  /// In place of the exchange's sum, a meeting of the user's own; may be empty.
  exchange_maker own_exchange = {};

  std::optional<training> work; ///< Absent from a simulation.

  /// Microbatches of a batch, over all data replicas, that are not alike; or null. In a
  /// simulation their samples and lengths say what they cost beside one another.
  std::shared_ptr<const uneven_microbatches> uneven = nullptr;

  clock_kind clock = clock_kind::real;
  cost_model cost;        ///< Of actions in virtual time.
  machine_model machines; ///< What messages take in virtual time.
  simulated_sizes sizes;  ///< Of messages where nothing is computed.
  /// Bytes of messages that a rank adds a second in virtual time, in collectives and
  /// where a matrix is tied; 0: sums take no time.
  double sum_rate = 0;
  int threads = 1; ///< In real time.
  /// Actors of the user's own stand between stages. Each may still hold the message
  /// that it has sent on.
  bool has_relays = false;
  std::vector<processor> processors; ///< Of ranks, in turns; empty: the CPU.

  /// Factors of `cost`, one per data replica, in virtual time. Empty: all are 1.
  std::vector<double> slowdowns;

  // What a run keeps for its caller, and how it is watched.
  bool keep_record = false;    ///< Every action, for proofs; else only sums.
  std::int64_t keep_first = 0; ///< Else the first actions of each rank, for a trace.
  bool watched = false;        ///< Actions are told while it goes on.
  bool keep_weights = false;   ///< Parameters at the end.
  bool keep_gradients = false; ///< The last gradients at the end, with keep_weights.
  bool keep_versions = false;  ///< What every update made, and of what; for proofs.
  bool model_times = false;    ///< As if each rank had a device of its own.
  bool keep_steps = false; ///< Copies of the last two, at every stage: see pause_every.
  /// Where launches of rank 0 are noted, if it is on a GPU; null: nowhere.
  std::shared_ptr<launch_times> launches = nullptr;
  // Batches between two of these, counted with those before the run; 0: none.
  int evaluate_every = 0;
  int checkpoint_every = 0;
  std::chrono::milliseconds stall_timeout{10'000}; ///< In real time.

  /// Batches between two pauses of all ranks, in which stages copy what they have.
  int pause_every() const { return keep_steps ? 1 : checkpoint_every; }

  bool recomputes() const { return sch.recomputes != recomputation::none; }

  /// Sums are work of their rank, beside what its device computes; else whoever comes
  /// to one does it at once.
  bool sums_take_time() const {
    return clock == clock_kind::virtual_time && sum_rate > 0;
  }

  /// Pipelines: those of all data replicas, in each direction of the schedule.
  int replicas() const { return data * directions_of(sch.where); }
  int ranks() const { return data * ranks_of_pipeline() * tensor; }
  int ranks_of_pipeline() const { return ranks_of(sch.where, dims); }

  /// What computes for a rank.
  processor processor_of(int rank) const {
    return processors.empty()
             ? processor{}
             : processors[static_cast<std::size_t>(rank) % processors.size()];
  }

  bool has_gpus() const { return std::ranges::any_of(processors, &processor::is_gpu); }

  /// Where a rank's tensors are. As ranks of a process hand each other buffers, all are
  /// where GPUs reach them if one of these ranks is on a GPU.
  memory_space& memory_at(int rank) const {
    const auto own = processor_of(rank);
    const auto gpu = std::ranges::find_if(processors, &processor::is_gpu);
    return memory_of(own.is_gpu() || gpu == processors.end() ? own : *gpu);
  }

  /// Where samples and labels are, which no GPU writes.
  memory_space& memory_for_samples() const {
    const auto gpu = std::ranges::find_if(processors, &processor::is_gpu);
    return gpu == processors.end() ? host_memory() : memory_of_samples(*gpu);
  }

  /// Whether some ranks are on the CPU, and others on GPUs. Their bits differ.
  bool mixes_processors() const {
    for (int rank = 1; rank < ranks(); ++rank)
      if (processor_of(rank).is_gpu() != processor_of(0).is_gpu())
        return true;
    return false;
  }

  /// Devices that compute at once: those of ranks, and of parameter servers.
  int devices() const {
    return updates_are_by(update_by::servers) ? 2 * ranks() : ranks();
  }

  /// The number of a stage's pipeline, without its tensor shard.
  int replica_at(position p) const {
    return p.data * directions_of(sch.where) + p.direction;
  }

  /// Tensor shards compute the same loss; shard 0 reports it.
  bool reports_loss(position p) const { return p.tensor == 0; }

  /// An evaluation needs each parameter once: from direction 0 of as many data replicas
  /// as hold one model.
  bool in_snapshot(position p) const {
    return p.direction == 0 && p.data < data_in_snapshot();
  }

  /// Data replicas that hold one model together.
  int data_in_snapshot() const {
    return shares_out(shared_out::parameters) ? data : expert;
  }

  // Names, as errors and reports say them.
  std::string name_of(position p) const;
  std::string optimizer_of(position p) const;
  std::string server_of(position p) const;
  std::string source_of(position p) const;

  /// Data replicas each hold a share of this, not all of it.
  bool shares_out(shared_out what) const {
    return data > 1 && exchange->shares >= what;
  }

  bool updates_are_by(update_by whom) const {
    return whom == (data > 1 ? exchange->updates : update_by::all);
  }

  /// All data replicas end with equal versions. Servers with a staleness of 0 answer
  /// all replicas with the same values.
  bool replicas_agree() const {
    return updates_are_by(update_by::all) || exchange->staleness == 0;
  }

  /// Data replicas or parameter servers that share a stage's optimizer state out; 1 if
  /// none do.
  int state_shares() const {
    return updates_are_by(update_by::servers) || shares_out(shared_out::optimizer_state)
             ? data
             : 1;
  }

  /// The share of each bucket whose optimizer state is at `p`: with the stage's
  /// optimizer shard, or with a parameter server.
  bucket_shares state_shares_of(position p) const;

  /// Values of those shares, over all buckets of a stage.
  std::int64_t state_values_of(position p) const;

  /// The share of each bucket that the stage's optimizer shard updates: the data
  /// replicas that sum a bucket share it out.
  bucket_shares shares_of(position p) const;

  /// Data replicas make one gradient of theirs once an update; else every backward sums
  /// its own.
  bool exchanges_at_update() const {
    return data > 1 && updates_are_by(update_by::all)
           && !shares_out(shared_out::gradients);
  }

  /// They do so by sums, and not by a meeting of the user's own.
  bool sums_at_update() const { return exchanges_at_update() && !own_exchange; }

  /// Directions of the schedule. A stage of all directions has one optimizer shard.
  int directions() const { return directions_of(sch.where); }

  /// Optimizer shards hear of each bucket whose gradients are complete: as soon as a
  /// backward has completed the bucket (`tells_at_once`), or when the update begins.
  bool tells_buckets() const { return sums_at_update() || directions() > 1; }
  bool tells_at_once() const {
    return directions() > 1 ? sch.eager && !shares_out(shared_out::gradients)
                            : sums_at_update();
  }

  /// Data replicas gather the parameters once an update; else before every use, or
  /// never.
  bool gathers_at_update() const {
    return shares_out(shared_out::optimizer_state)
           && !shares_out(shared_out::parameters);
  }

  /// The arrays that a stage holds of this: whole buckets, or its shares of them.
  bucket_extent extent_of(shared_out what) const {
    return shares_out(what) ? bucket_extent::share : bucket_extent::whole;
  }

  /// Older versions have the matrices of products as bf16: where that is what runs
  /// store, and stages hold their parameters whole. A share of a bucket may begin
  /// within a matrix.
  bool rounds_older_versions() const {
    return work && work->whole.options.stored == precision::bf16
           && !shares_out(shared_out::parameters);
  }

  /// Matrices stay packed for products of bf16, where several microbatches read a
  /// version, and stages hold their parameters whole.
  bool keeps_packed_weights() const {
    return rounds_older_versions() && update_size(sch, dims) > directions();
  }

  /// Values that a stage holds of each bucket: all, or its share.
  std::vector<std::int64_t> held_of(shared_out what, position p) const;

  /// Optimizer shards whose gradients one norm covers, in the order in which their
  /// squares are summed. The first one sums them. \pre work, and clipping
  std::vector<position> norm_group(position p) const;

  /// The network of a tensor shard, and the layers of it that a stage runs: for
  /// sequences as long as it takes, and for those of all microbatches. \pre work
  const network<float>& network_of(position p) const;
  slice<float> slice_of(position p, int team_size = 1) const;
  slices_by_length<float> slices_of(position p, int team_size = 1) const;

  /// Values (fp32) of a sample that a stage gets from the one before; 0 of the first.
  /// \param length of its sequence, as batches() says it \pre work
  std::int64_t values_below(position p, std::int64_t length) const;

  /// The segments in which a stage's forward runs again: where they begin among its
  /// layers, or in a simulation among its buckets.
  std::vector<int> segments_of(int stage) const;

  /// Floating-point operations of a forward in a stage, with its experts', of a sample
  /// as long as the network takes. \pre work
  double operations_of(int stage) const;

  /// The experts of a stage's layers, by their numbers in the network's list. In a
  /// simulation a stage has one layer, with one expert on each of `expert` data
  /// replicas.
  std::vector<int> experts_of(int stage) const;

  /// Whether passes of a stage meet others between their pieces: tensor shards, data
  /// replicas that share its layers out, experts.
  bool passes_meet(int stage) const {
    return tensor > 1 || shares_out(shared_out::gradients)
           || !experts_of(stage).empty();
  }

  /// Whether what a stage makes for the next one, or that one for it, leaves when it
  /// has been launched, if both are in one process: on GPUs, whose streams wait for
  /// each other. Not where somebody chooses by what has come, or meets others on the
  /// way, whose arrays actors move.
  bool leaves_at_launch(position lower) const;

  /// The stage that an expert stands with, of those that the stage at `p` asks.
  position host_of(int expert, position p) const;
  std::string name_of_expert(int expert, position host) const;

  /// The buckets of a stage: for each layer its own, then those of its experts that
  /// stand there. \pre work
  std::vector<layer_bucket> layer_buckets(position p) const;
  layer_list<float> layers_of(position p) const;

  /// Values of each bucket; in a simulation by `sizes`.
  std::vector<std::int64_t> buckets_of(position p) const;

  /// The data replicas that sum each bucket: for an expert's those that host it.
  std::vector<bucket_group> groups_of(position p) const;

  // A rank's data replica, its place in its pipeline (programs are made for that), and
  // its tensor shard.
  int data_of(int rank) const { return rank / tensor / ranks_of_pipeline(); }
  int pipe_rank(int rank) const { return rank / tensor % ranks_of_pipeline(); }
  int shard_of(int rank) const { return rank % tensor; }

  /// The rank that hosts a stage.
  int rank_of(position p) const;

  /// What a stage holds at most, by its schedule.
  stage_bounds bounds_of(hosted_stage where) const;

  /// Copies of a stage's parameters that evaluations may need at once: one more for
  /// each batch by which stages can drift apart.
  int snapshots_of(position p) const;

  /// A group's number: its ranks end after the same update when a run is interrupted.
  /// One group has all ranks, or each data replica has its own where none waits for
  /// another.
  int stops_with(int rank) const;

  /// The stages that a rank hosts, in order.
  std::vector<position> hosted_by(int rank) const;

  /// Batches of the samples of all data replicas.
  batching batches() const;

  /// A data replica's microbatch, counted over those of all: each has an equal
  /// contiguous share of a batch.
  int microbatch_of_all(int of_data, int microbatch) const;

  std::int64_t samples_of(int of_data, int microbatch) const {
    return batches().samples_of(microbatch_of_all(of_data, microbatch));
  }
  std::int64_t length_of(int of_data, int microbatch) const {
    return batches().length_of(microbatch_of_all(of_data, microbatch));
  }

  /// Tokens of a microbatch's samples, over those of the microbatch that has most; 1
  /// where microbatches are alike.
  double part_of_largest(int of_data, int microbatch) const;
};

/// Every rank of a run, in order.
std::vector<int> all_ranks(const run_plan& plan);

} // namespace troupe
