// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/progress.hpp"
#include "experiments/report/event_file.hpp"
#include "experiments/report/results.hpp"
#include "experiments/report/run_counts.hpp"
#include "experiments/session/pace.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace troupe {

/// What TensorBoard is told of a run, in an event file of the run's own folder, a piece
/// at each call. Steps are samples, with those before the run. The tags are `loss`,
/// `samples_per_second` (of the wall's clock), `evaluation/loss` and
/// `evaluation/accuracy`; and when the run is over, `schedule/bubble`,
/// `schedule/activations`, `schedule/weight_versions` and `schedule/staleness`, each of
/// the rank or stage with most, but the mean bubble.
class event_log {
public:
  /// Makes the folder, if it is not there, and a file.
  /// \param command as it was typed
  /// \param complain told what cannot be written, once: after that nothing is
  event_log(const std::filesystem::path& folder, const std::string& command,
            std::function<void(const std::string&)> complain);

  /// The run begins, maybe anew. \param plan outlives the log, or the next call
  void begin(const run_plan& plan);

  void add(const progress& p);
  void add_evaluation(total_samples seen, const score& s);

  /// The run has ended, as it is told.
  void end(const run_account& run);

private:
  void write();
  void give_up(const std::string& why);

  std::function<void(const std::string&)> complain_;
  std::string command_;
  std::optional<event_file> file_; // empty where nothing can be written
  const run_plan* plan_ = nullptr; // since begin()
  pace pace_;
  double rate_at_ = 0; // seconds
};

} // namespace troupe
