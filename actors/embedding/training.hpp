// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/progress.hpp"
#include "models/data/data_set.hpp"
#include "models/model_options.hpp"
#include "models/optimizer_options.hpp"
#include "models/uneven_microbatches.hpp"
#include "models/user_layer.hpp"
#include "plan/user_exchange.hpp"
#include "schedules/schedule.hpp"

#include <tl/expected.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace caf {
class actor_system;
}

// The library's entry point: describes a training, runs it, and returns losses,
// measurements and parameters.

namespace troupe {

struct user_relays;

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
  std::filesystem::path begin = {}; ///< Safetensors file with initial parameters;
                                    ///< empty: initial parameters by the seed.

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

/// A tensor of parameters after a training.
struct trained_parameter {
  std::vector<std::int64_t> dims;
  std::vector<float> values; ///< In row-major order of `dims`.

  bool operator==(const trained_parameter&) const = default;
};

/// A check that a training followed the schedule (docs/proofs.md).
struct training_proof {
  /// "plain loop", "replay", "replicas", "directions", "formula" or "memory".
  std::string name;
  bool holds; ///< False if the check fails; true also if there is no formula.
  /// "equal to the bit", the first difference, or the reason why there is nothing to
  /// check against.
  std::string detail;
};

/// Callbacks during a training. Functions may be empty. Calls are made on the thread
/// that called `train()`.
struct training_news {
  /// Called at most ten times a second, and once at the end of the run, before the
  /// evaluation.
  std::function<void(const progress&)> report = {};
  /// Set by another thread to end the training early, and to end the evaluation. The
  /// training ends after an update that all stages have made; under a local rule, when
  /// all admitted microbatches have been through. May be null; must outlive the call of
  /// train().
  const std::atomic<bool>* interrupted = nullptr;
};

/// The results of a training.
struct training_result {
  ending outcome = ending::finished;
  /// If the training failed: the reason, with the actor's name if an actor failed.
  std::string failure;
  /// True if a pass never ends, of this training or of an earlier training in this
  /// process: see training_job::stall_timeout.
  bool stuck = false;

  /// Losses in nats per prediction: one value per minibatch (a local rule: per
  /// microbatch). In a long run a value is the mean of several minibatches.
  std::vector<double> loss;
  /// Number of samples seen at the end of each entry of `loss`.
  std::vector<std::int64_t> loss_samples;
  std::int64_t samples = 0; ///< Number of samples that all entries of `loss` cover.
  /// Loss on held-out samples, in nats per prediction. Absent if `held_out` is 0, or
  /// the data has no held-out samples. Also absent after a failed training, or if
  /// `interrupted` ended the evaluation early.
  std::optional<double> held_out_loss;
  /// Fraction of held-out samples that a classifier gets right: 0 to 1. Absent for
  /// other models, and where `held_out_loss` is absent.
  std::optional<double> accuracy;

  double seconds = 0; ///< Wall time of the run, without the evaluation at the end.

  // The members from `makespan` to `picture`, except `modelled`, have no values if the
  // run failed.
  /// Seconds of the run's clock, from the start to the last end of an action.
  double makespan = 0;
  /// True if times are computed as if each rank had a device of its own.
  bool modelled = false;
  double bubble = 0;        ///< Mean over ranks of idle / makespan.
  std::vector<double> idle; ///< Seconds per rank: makespan - busy.
  /// Per rank: most stage-microbatches that held activations at the same time.
  std::vector<int> peak_activations;
  /// Per stage: most weight versions alive at the same time.
  std::vector<int> weight_versions;
  /// Per stage: largest staleness of a gradient, in versions.
  std::vector<int> staleness;
  std::vector<std::int64_t> peak_bytes; ///< Per rank: peak bytes of tensors.
  std::int64_t exchanged_bytes =
    0; ///< Bytes of gradients that data replicas, and directions, sent to each other.

  /// The timeline as text if the job draws, else empty. A row is a rank. A column is
  /// the greatest time that divides all starts and ends, or longer for at most 4000
  /// columns. '=' continues an action, and '.' is idle time.
  std::string picture;

  /// Parameters by name. Empty if the training failed, except after a failed final
  /// evaluation, a failed proof, or if data replicas drifted apart.
  std::map<std::string, trained_parameter> parameters;

  /// Proofs of a finished run, if the job verifies. If one fails, the training has
  /// failed.
  std::vector<training_proof> proofs;
};

/// Runs a training and waits for the end; no thread of the run and no actor remains,
/// unless `stuck` is set. The error result says what is wrong with the job and what is
/// allowed; no run has started then. If a training starts and fails, the result has the
/// reason in `failure`. Such a result has parameters only if the final evaluation
/// failed or data replicas drifted apart. Several trainings may run at the same time,
/// each on its own calling thread.
/// \throws std::bad_alloc if the machine has less memory than reported
/// \throws no_thread if a thread cannot be started
/// \throws exceptions of the callbacks
tl::expected<training_result, std::string> train(const training_job& job,
                                                 const training_news& news = {});

/// Writes parameters as a safetensors file, which `begin` and PyTorch can read. An
/// existing file is either replaced by a complete file, or left unchanged. Returns an
/// empty string on success, else the error. A result without parameters is an error, as
/// are parameters of another model.
/// \param result,job the parameters, and the job that produced the result
/// \param to path of the file
std::string save(const training_result& result, const training_job& job,
                 const std::filesystem::path& to);

} // namespace troupe
