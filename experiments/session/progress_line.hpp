#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/run/run_callbacks.hpp"
#include "models/evaluation.hpp"

#include <memory>
#include <string>

namespace troupe {

/// Makes a simulation count the microbatches whose backward has come to stage 0, over
/// all data replicas and tensor shards.
std::shared_ptr<const double> count_microbatches(run_plan& plan);

/// Where a run stands, on standard error: on a terminal one line that changes, else a
/// line every few seconds.
class progress_line {
public:
  /// \param plan outlives the line
  progress_line(const run_plan& plan, bool quiet);

  /// A run that computes something.
  /// \param last whether the run is over, so that the line stays
  void show(const progress& p, bool last);

  /// A run that computes nothing. \param microbatches as count_microbatches counts
  void show_simulation(double microbatches);

  /// An evaluation after so many steps.
  void show_evaluation(int steps, const score& s);

  /// Wipes away a line that was to change once more.
  void end();

private:
  void tell_of_waiting(const std::string& for_whom);
  bool is_due(bool last);
  void write(const std::string& line, bool stays);

  const run_plan& plan_;
  bool quiet_;
  bool terminal_;
  bool changes_ = false; ///< Whether a line stands there that is to change.
  bool waits_ = false;
  double shown_at_ = 0;
};

} // namespace troupe
