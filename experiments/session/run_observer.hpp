// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/output_options.hpp"
#include "experiments/report/results.hpp"
#include "experiments/session/event_log.hpp"
#include "experiments/session/live_page.hpp"
#include "experiments/session/progress_line.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace troupe {

/// Passes a run's progress to the observers: the terminal, TensorBoard and browsers.
/// The thread that waits for the run calls all functions.
class run_observer {
public:
  /// \param run that begins; its request outlives this object
  /// \param events folder for TensorBoard; empty: none
  /// \param watched page for browsers; may be null, outlives this object
  /// \param complain receives a sentence about a failed write
  run_observer(const run_account& run, const output_options& o,
               const std::filesystem::path& events, live_page* watched,
               std::function<void(const std::string&)> complain);
  run_observer(const run_observer&) = delete;
  run_observer& operator=(const run_observer&) = delete;

  /// The run starts again from an earlier step.
  /// \param next outlives this object
  void restart(const run_request& next);

  void report_progress(const progress& p);
  void report_actions(const recent_actions& recent);
  /// Reports microbatches, in the unit of count_microbatches.
  void report_simulation(double microbatches);
  void report_evaluation(total_steps steps, const score& s);

  /// Ends the changing line before other text is written to the terminal.
  void end_line() { line_.end(); }

  /// The run has ended, before the last evaluation.
  void report_end(const run_result& result);

  /// All numbers of the run are known.
  void end(const run_account& run);

private:
  const run_request* request_;
  timing_kind timing_;
  progress_line line_;
  live_page* watched_;
  std::optional<event_log> events_;
};

} // namespace troupe
