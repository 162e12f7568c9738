// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/checkpoint_options.hpp"
#include "messaging/links/tls_files.hpp"
#include "models/data/data_set.hpp"
#include "models/model_options.hpp"
#include "models/optimizer_options.hpp"
#include "models/uneven_microbatches.hpp"
#include "models/user_layer.hpp"
#include "plan/user_exchange.hpp"
#include "schedules/schedule.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace caf {
class actor_system;
}

// The description of a training for the library's entry point, train().

namespace troupe {

struct user_relays;

/// The processes that perform a job's ranks: nodes, each a `training_node` of the same
/// job (training_node.hpp).
struct job_nodes {
  /// "HOST:PORT" of each node; empty: this process performs all ranks.
  std::vector<std::string> addresses = {};
  /// The node of each rank, from 1; empty: ranks in order, equally many on each node.
  std::vector<int> node_map = {};
  /// Time without a message after which a node is lost, and the training fails.
  std::chrono::milliseconds failure_timeout{5000};
  std::optional<tls_files> tls = {}; ///< Absent: connections are not encrypted.
  /// True: addresses that other machines reach are allowed without TLS.
  bool insecure = false;
};

/// A training job: model, data, split into stages, schedule and optimizer.
///
/// A user may provide layers (`model`, a `user_network`), data (`data`, a `data_set`)
/// and the schedule (`pipeline_schedule`). A user may also provide the exchange of data
/// replicas at an update (`user_exchange`), actors between stages (`relays`), and the
/// actor system (`system`). If these objects throw before the run starts, the exception
/// is the error result. Only std::bad_alloc leaves `train()`, except from the maker of
/// `user_exchange`. If these objects throw during the run, the training fails. In both
/// cases the message has the exception's text, after the name of the object or of the
/// step that failed. Callbacks (`training_news`) differ: see train().
struct training_job {
  std::variant<model_options, user_network>
    model;                              ///< Options of a built-in model, or a
                                        ///< network that the user provides.
  std::shared_ptr<const data_set> data; ///< Not null. See open_data.
  schedule pipeline_schedule;           ///< See catalog.hpp.

  int stages = 1; ///< Ranks of a pipeline; each has as many stages as the schedule's
                  ///< placement says.
  /// Units (blocks or layers) per stage; empty: the largest stage costs as little as
  /// possible.
  std::vector<int> split = {};
  /// Number of blocks or layers that a stage recomputes together, if the schedule
  /// recomputes; 0: all of the stage.
  int recomputed_units = 0;
  /// Microbatches of a batch, over all data replicas; a multiple of `replicas`.
  int microbatches = 8;
  int steps = 100;                 ///< Number of batches.
  std::int64_t batch = 16;         ///< Samples of a batch, over all data replicas.
  uneven_microbatches uneven = {}; ///< Sizes and lengths of microbatches, if uneven.
  optimizer_options optimizer = {};
  std::uint64_t seed = 1; ///< Seed of the initial parameters, if `begin` is empty.
  /// Safetensors file with initial parameters; empty: initial parameters by the seed.
  /// With `checkpoints.resume = "auto"` a checkpoint takes precedence.
  std::filesystem::path begin = {};

  int replicas = 1; ///< Data replicas; each runs microbatches / replicas.
  /// The exchange by which data replicas keep one model, by the names of the programs'
  /// `--exchange`: "tree", "zero1" and others. Empty: "ring".
  std::string exchange = {};
  /// Encoding of gradients in messages of the exchange, by the names of `--compress`.
  /// Empty: "none". Must be empty with `user_exchange`, or with one replica.
  std::string compress = {};
  /// A meeting that the user provides; empty: `exchange` decides. If `user_exchange` is
  /// set, `exchange` must be empty. With one replica both must be empty.
  exchange_maker user_exchange = {};
  std::shared_ptr<const user_relays> relays =
    {}; ///< User actors between stages, with a function `make`; may be null.

  int tensor = 1; ///< Tensor shards of every layer, of a built-in gpt.
  /// True: tensor shards also divide the positions of sequences
  /// (`--sequence-parallel`).
  bool sequence_parallel = false;
  /// Neighbouring data replicas that divide the experts of a moe.
  int expert = 1;

  /// Processors of ranks, as `--device`: "cpu", "cuda" (all GPUs of the machine), or a
  /// list such as "cuda:0,cuda:1", which ranks take in rotation. Layers that the user
  /// provides need "cpu".
  std::string device = "cpu";
  /// The folder and the interval of checkpoints, and the checkpoint from which the job
  /// resumes. `steps` counts the steps of that checkpoint. With `resume = "auto"` a job
  /// that was cut short is continued by the same program. State of relays and of a
  /// `user_exchange` is not saved. A job that resumes cannot be verified.
  checkpoint_options checkpoints = {};
  job_nodes nodes = {};

  /// Compute threads, at most 1024; 0: as many as the machine has cores.
  int threads = 0;
  /// True: virtual time, with the arithmetic of real time. Each rank computes 100
  /// GFLOP/s and messages take no time, so every run gives the same times.
  bool virtual_time = false;
  std::int64_t held_out = 0; ///< Upper bound on samples for the evaluation at the end;
                             ///< 0: none.
  bool draws = false;        ///< Draws the run's actions as text; for short trainings.
  /// Proves the run, as `verify` does: plain loops compute the training again from the
  /// run's record. Needs the time and memory of several trainings; for short ones. Must
  /// be false with `user_exchange`, whose sums no loop knows. Relays that change values
  /// fail the proofs.
  bool verify = false;

  /// The longest real time without the end of an action. After that time the training
  /// fails, and the failure says which actor waits for which. At least 1 ms. The
  /// training waits longer for an action if earlier actions of that kind took long, or
  /// the action has many operations. If user code in a pass never returns, the thread
  /// of that pass never ends, and the objects in use are never freed. Such a program
  /// can only end by std::_Exit. In virtual time no such limit exists.
  std::chrono::milliseconds stall_timeout{10'000};

  /// In real time: the system that hosts the run's actors; null if train() makes a
  /// system. Null in virtual time. The system's threads run the actors' handlers, and
  /// the system must outlive the run. `train()` blocks. So call `train()` from a plain
  /// thread or a detached actor, never from an actor that a thread of the system runs.
  caf::actor_system* system = nullptr;
};

} // namespace troupe
