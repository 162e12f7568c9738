// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A network as layers in a row, for baselines that cut the row: of several kinds of
// problem, and back to a plan of the kind.

#include "planner/problem.hpp"

#include <vector>

namespace troupe::planner {

/// Operators, or sets of operators that share a device, in a topological order.
struct layer_chain {
  std::vector<double> seconds;
  std::vector<double> parameters; ///< Bytes, or the kind's nearest measure of memory.
  std::vector<double> cut_bytes;  ///< Over a cut behind each layer; the last is 0.
  int parts = 1;                  ///< Parts that a plan has at most.

  int layers() const { return static_cast<int>(seconds.size()); }
};

layer_chain chain_of(const pipedream_problem& problem);
layer_chain chain_of(const tarnawski_problem& problem);
layer_chain chain_of(const piper_problem& problem);
layer_chain chain_of(const alpa_problem& problem);
layer_chain chain_of(const dapple_problem& problem);
layer_chain chain_of(const placement_problem& problem);

/// The plan whose parts have `sizes` layers of chain_of(), and the answer. Devices that
/// no part needs become replicas, where the kind has replicas. No cost: the plan breaks
/// a rule.
/// \pre at most `parts` numbers above 0, whose sum is that of the layers
outcome answer_of(const pipedream_problem& problem, const std::vector<int>& sizes);
outcome answer_of(const tarnawski_problem& problem, const std::vector<int>& sizes);
outcome answer_of(const piper_problem& problem, const std::vector<int>& sizes);
outcome answer_of(const alpa_problem& problem, const std::vector<int>& sizes);
outcome answer_of(const dapple_problem& problem, const std::vector<int>& sizes);
outcome answer_of(const placement_problem& problem, const std::vector<int>& sizes);

} // namespace troupe::planner
