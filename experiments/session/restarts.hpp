// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/run/run_result.hpp"

#include <algorithm>
#include <functional>
#include <string>

namespace troupe {

/// Counts the starts of a run that bring it no further.
class restart_limit {
public:
  static constexpr int most = 50;

  /// \param before batches of the training before the run's first start
  explicit restart_limit(int before) : furthest_(before) {
    // nop
  }

  /// The run starts again. \param before batches that this start has behind it
  void start(int before) {
    fruitless_ = before > furthest_ ? 0 : fruitless_ + 1;
    furthest_ = std::max(furthest_, before);
  }

  bool is_reached() const { return fruitless_ >= most; }

  /// Why no further start follows. \param has_begun the last start did, and lost nodes
  /// \pre is_reached()
  std::string sentence(bool has_begun) const;

private:
  int furthest_;
  int fruitless_ = 0;
};

/// Performs runs, and starts them again while they lose nodes.
class restarts {
public:
  /// One start of a run, and whether it lost nodes while the run was under way.
  struct attempt {
    run_result result;
    bool has_lost = false;
  };

  /// How runs are started. Functions may be called again and again.
  struct means {
    /// \throws node_failure if nodes cannot be reached, or refuse
    std::function<attempt(const run_plan&)> start;
    std::function<bool(const run_plan&)> find_nodes; ///< False: too few answer.
    std::function<bool()> has_all_nodes; ///< No node of the command is away.
    std::function<void()> wait;          ///< Nodes that refuse may come back meanwhile.
    std::function<bool()> is_interrupted;
  };

  /// What a run goes on with when nodes were lost. \param lost what it left: `failure`
  /// says why they were
  using new_start = std::function<run_plan(const run_result& lost)>;

  /// As troupe::perform. \param again empty: no run is started again
  /// \throws node_failure of nodes that have never answered in this command, or refuse
  /// before any start of it; lasting_refusal if a new start would be refused likewise
  run_result perform(run_plan plan, const means& by, const new_start& again);

  /// Whether any run has lost nodes, at its start or later.
  bool has_lost() const { return has_lost_; }

private:
  // In any run of the command.
  bool nodes_have_answered_ = false;
  bool has_lost_ = false;
};

} // namespace troupe
