// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Baselines: simple rules that cut a row of layers, for each kind that has one.

#include "planner/layer_chain.hpp"
#include "planner/search_options.hpp"

#include <vector>

namespace troupe::planner {

/// Layers of each part. The number of parts is that of the chain, or of layers if these
/// are fewer.
std::vector<int> uniform_sizes(const layer_chain& chain);
std::vector<int> parameter_sizes(const layer_chain& chain);
std::vector<int> mincut_sizes(const layer_chain& chain);

/// A baseline as a planner.
template <class Problem, std::vector<int> (*sizes)(const layer_chain&)>
outcome baseline(const Problem& problem, const search_options&) {
  return answer_of(problem, sizes(chain_of(problem)));
}

} // namespace troupe::planner
