// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/own_exchange.hpp"
#include "actors/run/progress.hpp"
#include "models/data/data_set.hpp"
#include "models/model_options.hpp"
#include "models/optimizer_options.hpp"
#include "models/own_layer.hpp"
#include "models/uneven_microbatches.hpp"
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

namespace troupe {

struct own_relays;

/// A training: what learns from what, how it is cut, and by which schedule.
///
/// Of one's own may be: layers (`model`, an own_network), data (`data`, a data_set),
/// the schedule (`how`), the meeting of data replicas at an update (`own_exchange`),
/// actors between stages (`relays`), and the system that all actors live in (`system`).
/// What these throw never leaves train(): if they are asked before the run begins it is
/// the error, else the training's failure, with its text and whose it is.
struct training_job {
  std::variant<model_options, own_network> model; ///< One of ours, or one's own.
  std::shared_ptr<const data_set> data;           ///< Not null. See open_data.
  schedule how;                                   ///< See catalog.hpp.

  int stages = 1; ///< Ranks of a pipeline; each has `how.where.stages_a_rank` stages.
  std::vector<int> split = {}; ///< Units a stage; empty: as even as possible.
  /// Blocks or layers that a stage recomputes at once, where `how` recomputes; 0: all.
  int recomputed_units = 0;
  int microbatches = 8;            ///< Of a batch, over all data replicas.
  int steps = 100;                 ///< Batches.
  std::int64_t batch = 16;         ///< Samples.
  uneven_microbatches uneven = {}; ///< Sizes and lengths of microbatches, if any.
  optimizer_options optimizer = {};
  std::uint64_t seed = 1;           ///< Of the first parameters.
  std::filesystem::path begin = {}; ///< Safetensors to begin with; empty: by the seed.

  int replicas = 1; ///< Data replicas; they divide microbatches.
  /// How these keep one model, as the programs' `--exchange` names it: "tree",
  /// "zero1".. Empty: "ring".
  std::string exchange = {};
  exchange_maker own_exchange = {}; ///< Or a meeting of one's own, if not empty.
  std::shared_ptr<const own_relays> relays =
    {}; ///< Own actors between stages; or null.

  int threads = 0;           ///< That compute; 0: as many as the machine has cores.
  bool virtual_time = false; ///< Same arithmetic, but 100 GFLOP/s a rank, and messages
                             ///< in no time: every run gives the same times.
  std::int64_t held_out = 0; ///< Samples to evaluate on in the end, at most.
  bool draws = false;        ///< Whether what ran is drawn: for short trainings.

  /// In real time, for how long no action may end. Then the training fails, and says
  /// who waits for whom. If it is a pass of one's own that never ends, its thread, and
  /// what it uses, stay: such a program can only end by std::_Exit.
  std::chrono::milliseconds stall_timeout{10'000};

  /// In real time, where the run's actors live; null: in a system of their own. Its
  /// threads run their handlers, and it outlives the run. train() waits, so it is not
  /// called by an actor that such a thread runs, but by a detached one or a plain
  /// thread.
  caf::actor_system* system = nullptr;
};

/// What a training tells while it runs. Functions may be empty; they are called on the
/// thread that waits for it.
struct training_news {
  /// At most ten times a second, and once when all is over.
  std::function<void(const progress&)> report = {};
  /// Set from outside to end the training early, after an update that all stages have
  /// made. May be null.
  const std::atomic<bool>* interrupted = nullptr;
};

/// What a training leaves behind.
struct training_result {
  ending how = ending::finished;
  std::string failure; ///< Who failed and why, if it failed.
  bool stuck = false;  ///< A pass never ends, of this training or of one before it in
                       ///< this process: see training_job::stall_timeout.

  std::vector<double> loss; ///< Nats a prediction; a minibatch each (a local rule: a
                            ///< microbatch), or the mean of several in a long run.
  std::vector<std::int64_t> loss_samples; ///< Samples seen by then.
  std::int64_t samples = 0;               ///< Whose losses are all there.
  std::optional<double> held_out_loss;    ///< Nats a prediction; if it was asked for.
  std::optional<double> accuracy;         ///< Likewise, of classifiers: 0 to 1.

  double seconds = 0;  ///< Of wall time.
  double makespan = 0; ///< Seconds of the run's clock, from the start to the last end,
  bool modelled = false;    ///< laid out as if each rank had a device of its own.
  double bubble = 0;        ///< Mean over ranks of idle / makespan.
  std::vector<double> idle; ///< Seconds, a rank: makespan - busy.
  std::vector<int> peak_activations;    ///< A rank.
  std::vector<int> weight_versions;     ///< A stage: most alive at once.
  std::vector<int> staleness;           ///< A stage: of its stalest update.
  std::vector<std::int64_t> peak_bytes; ///< A rank: of tensors.
  std::int64_t exchanged_bytes =
    0; ///< Of gradients that data replicas, and directions, sent each other.

  /// If the job draws: a row a rank, a column a unit of time, '=' continues an action.
  std::string picture;

  /// Parameters by their names, in the order of their dims; empty if the training
  /// failed.
  std::map<std::string, std::vector<float>> parameters;
};

/// Trains. Waits for the end; nothing is left running. On error says what is wrong with
/// the job, and what is allowed: then nothing has begun. A training that begins and
/// fails says so in what it leaves behind; if it is the evaluation in the end that
/// fails, or if data replicas have drifted apart, its parameters are there. Several may
/// run at once, on threads of the caller's. \throws std::bad_alloc if the machine has
/// less memory than it said, and what the news throw
tl::expected<training_result, std::string> train(const training_job& job,
                                                 const training_news& news = {});

/// Writes parameters as safetensors, so that `begin` and PyTorch read them. A file that
/// is there is replaced by a whole one, or not at all. Empty on success, else what went
/// wrong.
/// \param what,job the parameters, and the job that they were trained by
/// \param to the file
std::string save(const training_result& what, const training_job& job,
                 const std::filesystem::path& to);

} // namespace troupe
