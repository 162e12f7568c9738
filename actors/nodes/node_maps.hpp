// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"

#include <string>
#include <vector>

// Node maps, which assign ranks to nodes: the default map and the checks of a map.

namespace troupe {

/// The default node of each rank, from 1: equal numbers of consecutive ranks, so that
/// tensor shards and neighbours of a pipeline share a node. For schedules with two
/// directions both ranks of a stage share a node.
std::vector<int> default_node_map(const run_plan& plan, int nodes);

/// The ranks of a node, in order.
std::vector<int> ranks_at(const std::vector<int>& node_map, int node);

/// Returns why a plan cannot run on nodes with this map, and what is allowed; empty if
/// there is no obstacle.
std::string node_map_error(const run_plan& plan, const std::vector<int>& node_map,
                           int nodes);

/// Returns why a lost node may take all kept steps of a stage with it. Empty if no node
/// hosts all data replicas of a rank.
std::string redundancy_error(const run_plan& plan, const std::vector<int>& node_map);

} // namespace troupe
