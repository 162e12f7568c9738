// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/costs.hpp"
#include "actors/plan/run_plan.hpp"
#include "experiments/options/mesh_options.hpp"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

class option_list;

/// What actions and messages take in virtual time.
struct cost_options {
  std::string text; ///< As typed; empty: operations are counted instead.
  cost_table actions;
  link_cost link;                ///< Between ranks.
  double sum_rate = 0;           ///< Bytes that a rank adds a second; 0: in no time.
  simulated_sizes sizes;         ///< Of messages where nothing is computed.
  std::vector<double> slowdowns; ///< Of data replicas; empty: all are as fast.
};

void add_cost(option_list& to, std::string& place);

/// Costs from "F=1,B=2/2/3/3,latency=0.5", in milliseconds; bandwidth in bytes a
/// second, bytes a message. B is 2F unless given (I + W if those are), I and W are B/2.
/// Data replicas take so many times as long: "replica=1/1/2.5". On error says what is
/// wrong, and what is allowed.
tl::expected<cost_options, std::string> parse_costs(const std::string& text,
                                                    const mesh_options& mesh);

} // namespace troupe
