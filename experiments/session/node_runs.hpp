// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/leader.hpp"
#include "actors/nodes/node_links.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/session/restarts.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// The ranks that this process performs: an empty list if nodes perform the run. Absent
/// if this process performs all ranks.
std::optional<std::vector<int>> ranks_here(const options& o);

/// Performs runs on the nodes that options name, or in this process if options name
/// none.
class node_runs {
public:
  /// Prepares the connections to nodes, if options name nodes. The error is one
  /// sentence about the options or the connections.
  /// \param o outlives this object
  static tl::expected<node_runs, std::string> from(const options& o);

  /// One sentence if the run's ranks cannot be placed on the nodes of nodes(); else an
  /// empty text. Empty if this process performs the runs.
  std::string placement_error(const run_plan& plan) const;

  /// The error of placement_error(), for the first start of a run. With --keep-steps,
  /// also an error if a step would not survive the loss of a node.
  std::string first_placement_error(const run_plan& plan) const;

  /// Performs a run by troupe::perform. With `again` a run that loses nodes starts
  /// again on the nodes that answer. No new start follows if too few nodes answer, or
  /// if a node refuses for a lasting reason. No new start follows either after
  /// restart_limit::most starts in a row that have brought the run no further. If the
  /// user ends the program while the run waits for nodes, or while GPUs here join, the
  /// outcome is `interrupted`.
  /// \param text the text of the run's schedule in the options
  /// \param again makes the plan of a new start; empty: no run starts again
  /// \throws node_failure if nodes cannot be reached, or refuse
  /// \throws the exceptions of troupe::perform, except ended_while_joining
  run_result perform(const std::string& text, run_plan plan,
                     const run_callbacks& callbacks,
                     const restarts::new_start& again = {});

  /// True if nodes perform the runs.
  bool uses_nodes() const { return links_ != nullptr; }

  /// Number of nodes of the current or last start; before the first start, of the nodes
  /// in the options.
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
  // nodes of the current start: all nodes of the options, or the nodes that answered
  std::vector<node_address> nodes_;
  session_id session_; // of the command; each attempt has a generation
  common_facts facts_; // shared by all attempts
  restarts restarts_;
};

} // namespace troupe
