// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "messaging/record.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace troupe {

/// Rows of each expert and choices dropped, a layer and a step each; null without
/// experts.
nlohmann::ordered_json experts_json(const run_plan& plan, const expert_loads& loads);

/// "1.23, 2.1%": over the last tenth of the steps, the rows of the fullest expert over
/// the mean of its layer, and the share of choices that were dropped. \pre there are
/// some
std::string summary_of(const expert_loads& loads);

} // namespace troupe
