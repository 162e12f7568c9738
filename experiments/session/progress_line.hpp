// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/run_callbacks.hpp"
#include "experiments/report/run_counts.hpp"
#include "experiments/session/changing_line.hpp"
#include "experiments/session/throughput.hpp"
#include "models/evaluation.hpp"

#include <memory>
#include <string>

namespace troupe {

struct run_plan;

/// Makes a simulation count the microbatches whose backward has come to stage 0. Each
/// data replica and tensor shard counts its own microbatches. Returns the sum of these
/// counts, which the plan's cost function increases during the run. An input gradient
/// or a weight gradient counts as half a backward.
/// \param plan receives another `cost`; the run is performed with this plan or a copy
std::shared_ptr<const double> count_microbatches(run_plan& plan);

/// The whole work of a run: the number of samples, or in a simulation the number that
/// count_microbatches() reaches at the end.
double all_of(const run_plan& plan);

/// Shows the progress of a run on standard error, with the rate and the time left. A
/// terminal shows one line that changes; other outputs get a line every few seconds.
class progress_line {
public:
  /// \param plan stays valid until restart(), or as long as this object lives
  /// \param quiet true: no line is shown
  progress_line(const run_plan& plan, bool quiet);

  /// Makes later calls show a new start of the run.
  /// \param plan stays valid until the next restart(), or as long as this object lives
  void restart(const run_plan& plan) { plan_ = &plan; }

  /// Shows a run that computes something. Shows nothing if the last line is younger
  /// than 0.2 seconds on a terminal, or 5 seconds elsewhere. But `p.waits_for` is shown
  /// at once, in lines that stay, if the previous call had none.
  /// \param last true: the run has ended; the line stays, and is shown at any interval
  void show(const progress& p, bool last);

  /// Shows a run that computes nothing, at the intervals of show(). The first interval
  /// starts when this object is made.
  /// \param microbatches number that count_microbatches() has counted so far
  void show_simulation(double microbatches);

  /// Shows a score in a line that stays.
  void show_evaluation(total_steps steps, const score& s);

  /// Erases the changing line of a terminal, if there is one.
  void end() { line_.end(); }

private:
  void report_waiting(const std::string& for_whom);
  void show_part(double done, const char* unit, std::optional<double> loss, bool last);

  const run_plan* plan_;
  bool quiet_;
  changing_line line_;
  bool waits_ = false;
  throughput throughput_;
};

} // namespace troupe
