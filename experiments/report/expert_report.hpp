// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/record.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace troupe {

struct run_plan;

/// JSON with the rows of each expert and the dropped choices, for each layer and each
/// entry of `loads`. An entry covers `loads.every` steps. Null if no layer has experts.
nlohmann::ordered_json experts_json(const run_plan& plan, const expert_loads& loads);

/// "1.23, 2.1%": two numbers over the last tenth of the entries of `loads`, at least
/// one entry. The first is the rows of a layer's fullest expert, divided by the mean
/// rows of the layer's experts, in the layer where this ratio is largest. The second is
/// the dropped choices as a fraction of all choices, over all layers.
/// \pre each layer has at least one entry
std::string summary_of(const expert_loads& loads);

} // namespace troupe
