// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"

#include <string>

namespace troupe {

/// The orders of a schedule as JSON, for a page to lay out at other costs: that of the
/// run's sizes first, then of half, twice and four times as many ranks and
/// microbatches, as far as the schedule allows them and a page has room for them. None,
/// if it has no room for the first. Each is {"ranks", "stages", "microbatches",
/// "steps", "rows"}, a row a rank: "0F0 0F1 0B0", with "1:" before an action of
/// direction 1 and "+" behind one that runs as one with the next. Rows of a local rule
/// are empty, as it has no order.
std::string orders_json(const run_plan& plan);

} // namespace troupe
