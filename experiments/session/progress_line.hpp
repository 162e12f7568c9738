// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/run/run_callbacks.hpp"
#include "experiments/report/run_counts.hpp"
#include "experiments/session/pace.hpp"
#include "models/evaluation.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// Makes a simulation count the microbatches whose backward has come to stage 0, over
/// all data replicas and tensor shards.
std::shared_ptr<const double> count_microbatches(run_plan& plan);

/// All that a run has to do: samples, or of a simulation such microbatches.
double all_of(const run_plan& plan);

/// The parts of a line side by side, as many of the first as fit into `width` columns:
/// a part that is too long, and all behind it, are left out, but of the first part as
/// much as fits stays.
std::string fitting(const std::vector<std::string>& parts, std::size_t width);

/// Where a run stands, how fast it comes on and how long it will yet take, on standard
/// error: on a terminal one line that changes, else a line every few seconds.
class progress_line {
public:
  /// \param plan outlives the line
  progress_line(const run_plan& plan, bool quiet);

  /// The run begins anew. \param plan outlives the line
  void begin_again(const run_plan& plan) { plan_ = &plan; }

  /// A run that computes something.
  /// \param last whether the run is over, so that the line stays
  void show(const progress& p, bool last);

  /// A run that computes nothing. \param microbatches as count_microbatches counts
  void show_simulation(double microbatches);

  void show_evaluation(total_steps steps, const score& s);

  /// Wipes away a line that was to change once more.
  void end();

private:
  void tell_of_waiting(const std::string& for_whom);
  bool is_due(bool last);
  void show_part(double done, const char* what, std::optional<double> loss, bool last);
  std::string wiped() const;
  void write(const std::string& line, bool stays);

  const run_plan* plan_;
  bool quiet_;
  bool terminal_;
  std::size_t changes_ = 0; ///< Columns of a line that is to change; 0: none is there.
  std::string written_;     ///< The last line, which is not written twice in a row.
  bool waits_ = false;
  pace pace_;
  double shown_at_ = 0;
};

} // namespace troupe
