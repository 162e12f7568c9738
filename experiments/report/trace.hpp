// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/perform.hpp"

#include <string>

namespace troupe {

/// A run's actions as the JSON of a trace that Perfetto and chrome://tracing open. Each
/// rank is a lane. Each action is a slice, coloured by the action's kind. Each message
/// between stages is a flow arrow. Activations and weight versions are counters.
/// \param title text that viewers write above the lanes
std::string trace_json(const run_plan& plan, const record& ran,
                       const std::string& title);

} // namespace troupe
