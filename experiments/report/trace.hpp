// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/perform.hpp"

#include <string>

namespace troupe {

/// A run's actions as the JSON of a trace that Perfetto and chrome://tracing open. A
/// rank is a lane, an action a slice coloured by its kind, a message between stages a
/// flow arrow. Activations and weight versions are counters.
/// \param title that viewers write above the lanes
std::string trace_json(const run_plan& plan, const record& ran,
                       const std::string& title);

} // namespace troupe
