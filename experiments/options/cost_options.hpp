// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/mesh_options.hpp"
#include "plan/costs.hpp"
#include "plan/run_plan.hpp"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

/// The costs of actions and messages in virtual time.
struct cost_options {
  /// Costs as typed. If empty, the costs of a training are numbers of operations, and a
  /// simulation has the defaults of parse_costs().
  std::string text;
  cost_table actions;
  link_cost link;        ///< Latency and bandwidth between ranks of one machine.
  double sum_rate = 0;   ///< Bytes per second that a rank adds; 0: sums take no time.
  simulated_sizes sizes; ///< Sizes of messages in a simulation, which computes nothing.
  /// Factors of the times of data replicas; empty: all 1.
  std::vector<double> slowdowns;
};

/// Reads costs from "F=1,B=2/2/3/3,latency=0.5": times in milliseconds, bandwidth and
/// sum in bytes per second, messages in bytes. An action has one value, or one for each
/// rank of a pipeline. F is 1 by default. B is 2F by default (I + W if both are given);
/// I and W are B/2 by default. R is F by default, FB is F + B, buckets is 1, sums is 2;
/// all other values are 0. "replica=1/1/2.5" has the factor of each data replica's
/// times. The error is one sentence with the mistake and the allowed values.
tl::expected<cost_options, std::string> parse_costs(const std::string& text,
                                                    const mesh_options& mesh);

/// One sentence if a run could last longer than the virtual clock, which counts
/// nanoseconds in 63 bits. The test uses an upper bound of the duration. Empty if the
/// clock suffices, or if the plan has no microbatches, which another check refuses.
std::string outlasts_clock(const cost_options& costs, const run_plan& plan);

} // namespace troupe
