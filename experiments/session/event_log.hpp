// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/progress.hpp"
#include "experiments/report/event_file.hpp"
#include "experiments/report/results.hpp"
#include "experiments/report/run_counts.hpp"
#include "experiments/session/throughput.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace troupe {

/// Writes a run's numbers for TensorBoard to an event file in the run's own folder;
/// each call writes its numbers. Steps are samples, including the samples before the
/// run. The tags during a run are `loss`, `gradient_norm`, `learning_rate`,
/// `samples_per_second` (by the wall clock), `evaluation/loss` and, for a classifier,
/// `evaluation/accuracy`. The tags at the end are `schedule/bubble`,
/// `schedule/activations`, `schedule/weight_versions` and `schedule/staleness`. If the
/// last evaluation has ended, the tags of an evaluation follow. The bubble is the mean
/// over ranks, and is left out for timing_kind::shared. The three other tags of the
/// schedule are of the rank or stage with the largest value.
class event_log {
public:
  /// Makes the folder, if there is none, and a file.
  /// \param command the command line as typed
  /// \param complain receives one sentence about the first failure, from this
  /// constructor or a later call; nothing more is written afterwards. Objects to which
  /// the function refers outlive this object
  event_log(const std::filesystem::path& folder, const std::string& command,
            std::function<void(const std::string&)> complain);

  /// Marks the start of a run, or a new start after lost nodes.
  /// \param plan stays valid until the next begin(), or as long as this object lives
  void begin(const run_plan& plan);

  /// Writes the new losses, and at most once a second the rate in samples per second.
  /// \pre begin() was called
  void add(const progress& p);
  void add_evaluation(total_samples seen, const score& s);

  /// Writes the last numbers of a run that has ended; nothing if the run has failed.
  /// \pre begin() was called
  void end(const run_account& run);

private:
  void write();
  void give_up(const std::string& why);

  std::function<void(const std::string&)> complain_;
  std::string command_;
  std::optional<event_file> file_; // empty after a failure: nothing more is written
  const run_plan* plan_ = nullptr; // set by begin()
  throughput throughput_;
  double rate_at_ = 0; // seconds, of the last rate
};

} // namespace troupe
