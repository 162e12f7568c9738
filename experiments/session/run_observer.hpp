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
  /// \param run the run that begins; `run.request` stays valid until restart(), or as
  /// long as this object lives
  /// \param events folder for TensorBoard; empty: none
  /// \param watched page for browsers; outlives this object; null: there is no page
  /// \param complain receives a sentence about a failed write for TensorBoard; objects
  /// to which the function refers outlive this object
  run_observer(const run_account& run, const output_options& o,
               const std::filesystem::path& events, live_page* watched,
               std::function<void(const std::string&)> complain);
  run_observer(const run_observer&) = delete;
  run_observer& operator=(const run_observer&) = delete;

  /// Shows that the run starts again from an earlier step.
  /// \param next stays valid until the next restart(), or as long as this object lives
  void restart(const run_request& next);

  void report_progress(const progress& p);
  void report_actions(const recent_actions& recent);
  /// Reports the number of microbatches that count_microbatches() has counted so far.
  void report_simulation(double microbatches);
  void report_evaluation(total_steps steps, const score& s);

  /// Erases the changing line before other text is written to the terminal.
  void end_line() { line_.end(); }

  /// Shows the last loss of a run that has ended, if there is one, on standard error.
  /// Called before the last evaluation.
  void report_end(const run_result& result);

  /// Writes the last numbers of the run for TensorBoard, after the last evaluation.
  void end(const run_account& run);

private:
  const run_request* request_;
  timing_kind timing_;
  progress_line line_;
  live_page* watched_;
  std::optional<event_log> events_;
};

} // namespace troupe
