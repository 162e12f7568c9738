// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/position.hpp"
#include "plan/run_plan.hpp"

#include <string>
#include <vector>

// The experts of a stage's layers, and the stages that host experts.

namespace troupe {

/// The experts of a stage's layers, as indexes into the network's list. In a
/// simulation a stage has one layer, with one expert at each position along
/// axis::expert; no expert if the axis has size 1.
std::vector<int> experts_of(const run_plan& plan, int stage);

/// Position of the stage that hosts an expert, among the stages that the stage at `p`
/// sends rows to.
/// \param expert index in the network's list of experts
position host_of(const run_plan& plan, int expert, position p);
std::string name_of_expert(const run_plan& plan, int expert, position host);

} // namespace troupe
