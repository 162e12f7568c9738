// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

// Node maps, which assign ranks to nodes: the default map and the checks of a map.

namespace troupe {

struct run_plan;

/// The default node of each rank, from 1. Each node gets a block of consecutive ranks,
/// so that tensor shards and neighbours of a pipeline share a node where possible.
/// Sizes of blocks differ by at most 1. With several directions, ranks are sorted
/// before the division into blocks: ranks that host the same stages become adjacent.
/// \param nodes number of nodes, at least 1
std::vector<int> default_node_map(const run_plan& plan, int nodes);

/// The ranks of a node, in increasing order.
std::vector<int> ranks_at(const std::vector<int>& node_map, int node);

/// Returns a sentence that says why a plan cannot run with this map, or over nodes at
/// all, and which maps are allowed; empty if the plan can run.
/// \param nodes number of nodes
std::string node_map_error(const run_plan& plan, const std::vector<int>& node_map,
                           int nodes);

/// Returns a sentence about a node whose loss would lose all kept steps of a stage: the
/// node hosts all data replicas of a rank. Empty if no such node exists. If replicas
/// divide experts, only replicas with the rank's own experts count.
/// \pre node_map_error() is empty
std::string redundancy_error(const run_plan& plan, const std::vector<int>& node_map);

} // namespace troupe
