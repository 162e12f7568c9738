// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The node of each rank, from 1, if nobody says another: equal numbers of ranks that
/// follow one another, so that shards of a tensor and neighbours of a pipeline stay
/// together; of schedules with two directions both ranks of a stage.
std::vector<int> usual_places(const run_plan& plan, int nodes);

/// The ranks of a node, in order.
std::vector<int> ranks_at(const std::vector<int>& places, int node);

/// Why a plan cannot be run on several nodes so, with what is allowed; empty if it can.
std::string refusal_of_places(const run_plan& plan, const std::vector<int>& places,
                              int nodes);

/// Why a node may be lost with all that data replicas keep of a stage; empty if none
/// may.
std::string refusal_of_twins(const run_plan& plan, const std::vector<int>& places);

} // namespace troupe
