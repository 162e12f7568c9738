#pragma once

#include "kernels/virtual_clock.hpp"
#include "messaging/interconnect.hpp"
#include "messaging/position.hpp"
#include "messaging/record.hpp"
#include "messaging/replica_exchange.hpp"
#include "models/batching.hpp"
#include "models/bucket_share.hpp"
#include "models/data/data_set.hpp"
#include "models/optimizer.hpp"
#include "models/slice.hpp"
#include "models/weights.hpp"
#include "schedules/schedule.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

enum class clock_kind : std::uint8_t { real, virtual_time };

/// What actions send where nothing is computed.
struct simulated_sizes {
  double message = 0;  ///< Bytes of an activation, and of its gradient.
  double gradient = 0; ///< Bytes of a stage's gradients, and of its parameters.
  int buckets = 1;     ///< Of a stage, of equal size.
  double sum = 0;      ///< Bytes that tensor shards sum at once.
  int sums = 2;        ///< Of tensor shards in a forward, and in a backward.
  double experts = 0;  ///< Bytes of the rows that a stage sends its experts.
};

/// What the actors compute; absent from a simulation.
struct training {
  network<float> whole;
  /// What stages have of it, if not all: its tensor shards, or where it has experts one
  /// without them.
  std::vector<network<float>> shards;
  expert_options experts;        ///< Of a network that has some.
  std::vector<int> first_layers; ///< As `cut` returns them.
  std::shared_ptr<const data_set> data;
  std::int64_t batch; ///< Samples.
  optimizer_options optimizer;
  weight_source weights;
};

/// Some parameters of a layer that have one bucket.
struct layer_bucket {
  std::size_t of_layer; ///< Of the whole network.
  int expert;           ///< Whose they are, in the network's list; -1: the stage's own.
  std::shared_ptr<const layer<float>> what;
};

/// The data replicas that hold a bucket: `count` of them, one after another `apart`
/// data replicas apart.
struct bucket_group {
  int index; ///< Of the one that asks.
  int count;
  int apart;
};

/// A run: what is computed, by which schedule, on which clock.
struct run_plan {
  schedule sch;
  shape dims; ///< Of one data replica: its share of the microbatches.

  int data = 1;   ///< Replicas of the whole pipeline, each with a share of every batch.
  int tensor = 1; ///< Shards of every layer.
  int expert = 1; ///< Neighbouring data replicas that share a layer's experts out.
  bool sequence_parallel = false; ///< Whether they share out sequences' positions too.

  /// How data replicas keep one model. Not absent if there are several.
  std::optional<replica_exchange> exchange = {};

  std::optional<training> work;

  clock_kind clock = clock_kind::real;
  cost_model cost;        ///< Of actions in virtual time.
  machine_model machines; ///< What messages take in virtual time.
  simulated_sizes sizes;  ///< Of messages where nothing is computed.
  int threads = 1;        ///< In real time.

  /// How many times as long each data replica's ranks take in virtual time; empty: all
  /// take what `cost` says.
  std::vector<double> slowdowns;

  // What is kept of a run, and how its thread waits for it.
  bool keep_record = false;    ///< Every action, for proofs; else only sums.
  std::int64_t keep_first = 0; ///< Else the first actions of each rank, for a trace.
  bool keep_weights = false;   ///< Parameters at the end.
  bool keep_gradients = false; ///< The last gradients at the end, with keep_weights.
  bool keep_versions = false;  ///< What every update made, and of what; for proofs.
  bool model_times = false;    ///< As if each rank had a device of its own.
  int evaluate_every = 0;      ///< Batches between two evaluations; 0: none.
  std::chrono::milliseconds stall_timeout{10'000}; ///< In real time.

  /// Pipelines in all: data replicas, in each direction of the schedule.
  int replicas() const { return data * replicas_of(sch.where); }
  int ranks() const { return data * ranks_of_pipeline() * tensor; }
  int ranks_of_pipeline() const { return ranks_of(sch.where, dims); }

  /// What computes at once: ranks, and a parameter server for each of their shares.
  int devices() const {
    return updates_are_by(update_by::servers) ? 2 * ranks() : ranks();
  }

  /// A stage's pipeline among all of them, and what the stage is called.
  int replica_at(position p) const {
    return p.data * replicas_of(sch.where) + p.replica;
  }

  /// Whether what several tensor shards of a stage have alike is this one's to tell.
  bool speaks(position p) const { return p.tensor == 0; }

  /// Whether an evaluation needs this stage's parameters: those of one replica, and
  /// where data replicas share them or their experts out those of its like.
  bool shows(position p) const { return p.replica == 0 && p.data < data_shown(); }

  /// Data replicas that make one model together.
  int data_shown() const { return shares_out(shared_out::parameters) ? data : expert; }
  std::string name_of(position p) const;
  std::string optimizer_of(position p) const;
  std::string server_of(position p) const;
  std::string source_of(position p) const;

  /// Whether data replicas share this out, instead of each holding all of it.
  bool shares_out(shared_out what) const {
    return data > 1 && exchange->shares >= what;
  }

  bool updates_are_by(update_by whom) const {
    return whom == (data > 1 ? exchange->updates : update_by::all);
  }

  /// Whether the versions of all data replicas are equal in the end: servers that let
  /// nobody get ahead answer all alike.
  bool replicas_agree() const {
    return updates_are_by(update_by::all) || exchange->staleness == 0;
  }

  /// The share of every bucket that one optimizer has the state of: a stage's, or a
  /// server's.
  bucket_share state_share_of(position p) const {
    return updates_are_by(update_by::servers) ? bucket_share{p.data, data}
                                              : share_of(p);
  }

  /// Values of that share, of all buckets of a stage.
  std::int64_t state_values_of(position p) const;

  /// The share of every bucket that the optimizer of a stage updates.
  bucket_share share_of(position p) const {
    return shares_out(shared_out::optimizer_state) ? bucket_share{p.data, data}
                                                   : bucket_share{};
  }

  /// Whether an update sums the gradients of data replicas, instead of each backward;
  /// and whether it gathers the parameters, instead of each action that reads them.
  bool sums_at_update() const {
    return data > 1 && updates_are_by(update_by::all)
           && !shares_out(shared_out::gradients);
  }

  /// Directions of the schedule: replicas of a stage with one optimizer shard.
  int directions() const { return replicas_of(sch.where); }

  /// Whether optimizer shards hear of each bucket whose gradients are complete; and
  /// whether as soon as a backward has completed it, not when the update begins.
  bool tells_buckets() const { return sums_at_update() || directions() > 1; }
  bool tells_at_once() const {
    return directions() > 1 ? sch.eager && !shares_out(shared_out::gradients)
                            : sums_at_update();
  }
  bool gathers_at_update() const {
    return shares_out(shared_out::optimizer_state)
           && !shares_out(shared_out::parameters);
  }

  /// What a stage holds of something that may be shared out.
  bucket_extent extent_of(shared_out what) const {
    return shares_out(what) ? bucket_extent::share : bucket_extent::whole;
  }

  /// How many values a bucket of `values` has here: all, or the stage's share.
  std::int64_t held_of(shared_out what, position p, std::int64_t values) const {
    const auto share = share_of(p);
    return shares_out(what) ? share.end(values) - share.begin(values) : values;
  }

  /// The optimizer shards whose gradients one norm covers, where clipping has one, in
  /// the order in which their squares are summed; the first sums them. \pre work
  std::vector<position> norm_group(position p) const;

  /// The network that a stage's layers belong to, and those that it computes itself.
  /// \pre work
  const network<float>& network_of(position p) const;
  slice<float> slice_of(position p, int team_size = 1) const;

  /// Floating-point operations of a sample's forward in a stage, its experts' among
  /// them. \pre work
  double operations_of(int stage) const;

  /// The experts of a stage's layers, in the network's list, and where one of them
  /// stands for the data replica of a stage. Where nothing is computed, a stage has one
  /// layer with one expert on each of `expert` data replicas.
  std::vector<int> experts_of(int stage) const;
  position host_of(int expert, position p) const;
  std::string name_of_expert(int expert, position host) const;

  /// What has a bucket of its own with a stage: its layers, each followed by those of
  /// its experts that stand there. \pre work
  std::vector<layer_bucket> layer_buckets(position p) const;
  layer_list<float> layers_of(position p) const;

  /// Values of each of those, or where nothing is computed what `sizes` says, and who
  /// sums their gradients.
  std::vector<std::int64_t> buckets_of(position p) const;
  std::vector<bucket_group> groups_of(position p) const;

  /// The rank's data replica; its place in its pipeline, for which programs are made;
  /// and its tensor shard.
  int data_of(int rank) const { return rank / tensor / ranks_of_pipeline(); }
  int pipe_rank(int rank) const { return rank / tensor % ranks_of_pipeline(); }
  int shard_of(int rank) const { return rank % tensor; }

  int rank_of(position p) const;

  /// The ranks that end after the same update when a run is interrupted have the same
  /// number here: all, or those of one data replica where replicas need not wait for
  /// one another.
  int stops_with(int rank) const;

  /// What a rank hosts, by stage.
  std::vector<position> hosted_by(int rank) const;

  /// How all data replicas' samples make batches.
  batching batches() const;

  /// A data replica's microbatch, counted over those of all: each has an equal
  /// contiguous share of a batch.
  int microbatch_of_all(int of_data, int microbatch) const;

  std::int64_t samples_of(int of_data, int microbatch) const {
    return batches().samples_of(microbatch_of_all(of_data, microbatch));
  }
};

} // namespace troupe
