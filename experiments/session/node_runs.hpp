// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/leader.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/session/node_links.hpp"
#include "experiments/session/restarts.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// The ranks that this process performs: none if nodes perform the run; absent: all.
std::optional<std::vector<int>> ranks_here(const options& o);

/// Performs runs on the nodes that options name, or in this process if options name
/// none.
class node_runs {
public:
  /// The error is one sentence about the options.
  static tl::expected<node_runs, std::string> from(const options& o);

  /// One sentence if the run's ranks cannot be placed on the nodes; empty if they can.
  std::string placement_error(const run_plan& plan) const;

  /// placement_error() before the first start of a run. With --keep-steps, each step
  /// must also survive the loss of a node.
  std::string first_placement_error(const run_plan& plan) const;

  /// Performs a run as troupe::perform does. With --restart, a run that loses nodes
  /// starts again on the nodes that answer, until the run ends.
  /// \param text of the run's schedule in the options
  /// \throws node_failure too, if nodes cannot be reached
  run_result perform(const std::string& text, run_plan plan,
                     const run_callbacks& callbacks,
                     const restarts::new_start& again = {});

  /// True if nodes perform the runs.
  bool uses_nodes() const { return links_ != nullptr; }

  /// The current number of nodes.
  std::size_t nodes() const { return nodes_.size(); }

private:
  explicit node_runs(const options& o) : options_(&o), nodes_(o.nodes.nodes) {
    // nop
  }
  std::vector<int> node_map_of(const run_plan& plan) const;
  std::string text_of(const std::string& schedule) const;
  restarts::attempt start(const std::string& text, const run_plan& plan,
                          const run_callbacks& callbacks);
  bool find_nodes(const run_plan& plan);

  const options* options_;
  std::unique_ptr<node_links> links_; // null: runs in this process
  // current ones: all nodes of the options, or the nodes that answered
  std::vector<node_address> nodes_;
  session_id session_; // of the command; each attempt has a generation
  common_facts facts_; // shared by all attempts
  restarts restarts_;
};

} // namespace troupe
