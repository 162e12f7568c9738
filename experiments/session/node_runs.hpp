// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/lead.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/session/node_links.hpp"
#include "experiments/session/restarts.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// The ranks that this process plays: none if others do; absent: all.
std::optional<std::vector<int>> ranks_here(const options& o);

/// Performs runs, on the nodes that options name, or in this process if they name none.
class node_runs {
public:
  /// On error says what is wrong with the options.
  static tl::expected<node_runs, std::string> from(const options& o);

  /// Why a run cannot be placed so; empty if it can.
  std::string refusal(const run_plan& plan) const;

  /// The same before a run begins for the first time, with as much as it is to survive.
  std::string first_refusal(const run_plan& plan) const;

  /// As troupe::perform. With --restart a run that loses nodes begins anew on those
  /// that answer, until it is over. \param text of the run's schedule, as the options
  /// have it \throws node_failure too, if nodes cannot be reached
  run_result perform(const std::string& text, run_plan plan, const run_callbacks& told,
                     const restarts::new_start& again = {});

  /// Whether runs are played elsewhere.
  bool elsewhere() const { return links_ != nullptr; }

  /// How many nodes there are now.
  std::size_t nodes() const { return nodes_.size(); }

private:
  explicit node_runs(const options& o) : options_(&o), nodes_(o.nodes.nodes) {
    // nop
  }
  std::vector<int> places_for(const run_plan& plan) const;
  std::string text_of(const std::string& schedule) const;
  restarts::attempt start(const std::string& text, const run_plan& plan,
                          const run_callbacks& told);
  bool find_nodes(const run_plan& plan);

  const options* options_;
  std::unique_ptr<node_links> links_; // null: this process
  std::vector<node_address> nodes_;   // that play: those of the options, or some
  session_id session_;                // of the command; a generation each attempt
  common_facts facts_;                // that all attempts need to share
  restarts restarts_;
};

} // namespace troupe
