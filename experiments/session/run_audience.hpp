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

/// Those who are told how a run comes on while it does: the terminal, TensorBoard and
/// browsers. All is called on the thread that waits for the run.
class run_audience {
public:
  /// \param run that begins; its request outlives this
  /// \param events folder for TensorBoard; empty: none
  /// \param watched by browsers; may be null, outlives it
  /// \param complain told what cannot be written
  run_audience(const run_account& run, const output_options& o,
               const std::filesystem::path& events, live_page* watched,
               std::function<void(const std::string&)> complain);
  run_audience(const run_audience&) = delete;
  run_audience& operator=(const run_audience&) = delete;

  /// The run begins anew behind what came before it. \param next outlives it
  void begin_again(const run_request& next);

  void tell(const progress& p);
  void tell_of_actions(const recent_actions& recent);
  void tell_of_simulation(double microbatches); ///< As count_microbatches counts.
  void tell_of_evaluation(total_steps steps, const score& s);

  /// Something else is about to be written to the terminal.
  void step_aside() { line_.end(); }

  /// The run is over, and has not been evaluated in the end.
  void tell_of_end(const run_result& result);

  /// All is known of the run.
  void end(const run_account& run);

private:
  const run_request* request_;
  timing_kind timing_;
  progress_line line_;
  live_page* watched_;
  std::optional<event_log> events_;
};

} // namespace troupe
