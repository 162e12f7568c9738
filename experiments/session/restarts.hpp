// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/run_result.hpp"
#include "plan/run_plan.hpp"

#include <algorithm>
#include <functional>
#include <string>

namespace troupe {

/// Counts the starts in a row that bring a run no further than the starts before.
class restart_limit {
public:
  static constexpr int most = 50; ///< Starts in a row after which no start follows.

  /// \param batches_before batches of the training before the run's first start
  explicit restart_limit(int batches_before) : furthest_(batches_before) {
    // nop
  }

  /// Records that the run starts again.
  /// \param batches_before batches of the training before this start
  void start(int batches_before) {
    fruitless_ = batches_before > furthest_ ? 0 : fruitless_ + 1;
    furthest_ = std::max(furthest_, batches_before);
  }

  bool is_reached() const { return fruitless_ >= most; }

  /// The end of a sentence about a failure: the reason why no further start follows,
  /// and advice.
  /// \param has_begun true: the last start succeeded, and the run then lost nodes
  /// \pre is_reached()
  std::string sentence(bool has_begun) const;

private:
  int furthest_;
  int fruitless_ = 0;
};

/// Performs runs, and starts a run again when nodes are lost.
class restarts {
public:
  /// One start of a run, and whether the run lost nodes after the start succeeded.
  struct attempt {
    run_result result;
    bool has_lost = false;
  };

  /// The functions that start runs. Each may be called several times.
  struct start_functions {
    /// \throws node_failure if nodes cannot be reached, or refuse
    std::function<attempt(const run_plan&)> start;
    /// Finds the nodes for the next start; returns false if too few nodes answer, or if
    /// the user ends the program.
    std::function<bool(const run_plan&)> find_nodes;
    /// Returns true if no node of the command is missing.
    std::function<bool()> has_all_nodes;
    /// Waits after a start has failed twice in a row for the same reason.
    std::function<void()> wait;
    /// Returns true if the user has ended the program.
    std::function<bool()> is_interrupted;
  };

  /// Makes the plan of a new start after nodes were lost.
  /// \param lost the result of the last start; `failure` has the reason
  using new_start = std::function<run_plan(const run_result& lost)>;

  /// Performs a run by `functions.start`, and starts the run again after a loss.
  /// Returns the result of the last start. `failure` says why no start followed a loss,
  /// unless the user ended the program.
  /// \param functions only called during this call
  /// \param again empty: no run is started again
  /// \throws node_failure if a start fails, and `again` is empty or no node of this
  /// command has answered before
  /// \throws node_failure if the first start fails for a lasting reason
  /// \throws lasting_refusal if a later start fails for a lasting reason
  run_result perform(run_plan plan, const start_functions& functions,
                     const new_start& again);

  /// True if any run of the command has lost nodes, at a start or later.
  bool has_lost() const { return has_lost_; }

private:
  // Facts about all runs of the command so far.
  bool nodes_have_answered_ = false;
  bool has_lost_ = false;
};

} // namespace troupe
