// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/embedding/training_job.hpp"
#include "actors/run/progress.hpp"

#include <tl/expected.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

// The library's entry point: runs a training, and returns losses, measurements and
// parameters.

namespace troupe {

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
/// that called `train()`, except those of `warn`.
struct training_news {
  /// Called at most ten times a second, and once at the end of the run, before the
  /// evaluation.
  std::function<void(const progress&)> report = {};
  /// Called with a sentence that needs attention and ends nothing: a checkpoint that
  /// was skipped or could not be written, or a node that is busy. Calls come from any
  /// thread, one at a time; exceptions are ignored. `training_result::warnings` has the
  /// sentences about checkpoints.
  std::function<void(const std::string&)> warn = {};
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
  /// Steps of the checkpoint from which the training has resumed; 0: none. If these are
  /// all steps of the job, the result has the checkpoint's parameters and no losses.
  int steps_before = 0;
  /// Sentences about checkpoints that were skipped or could not be written.
  std::vector<std::string> warnings;

  /// Losses in nats per prediction: one value per minibatch (a local rule: per
  /// microbatch). In a long run a value is the mean of several minibatches.
  std::vector<double> loss;
  /// Number of samples of this call at the end of each entry of `loss`.
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
/// allowed, or why a node refuses; no run has started then. Sentences name the options
/// of programs: docs/embedding.md lists the members. If a training starts and fails,
/// the result has the reason in `failure`. Such a result has parameters only if the
/// final evaluation failed or data replicas drifted apart. Several trainings may run at
/// the same time, each on its own calling thread. \throws std::bad_alloc if the machine
/// has less memory than reported \throws no_thread if a thread cannot be started
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
