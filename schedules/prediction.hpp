// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/timeline.hpp"

#include <cstdint>
#include <functional>

namespace troupe {

/// Predicts the start and the end of every action on every rank, from the schedule's
/// orders and weight rule (version_read). One loop over events computes the times,
/// without actors and parameters: an independent reference for actors in virtual time.
/// In a pair, the first action takes the time of both, and the second takes none. Times
/// are nanoseconds from the start of the run.
/// \param cost nanoseconds of an action
/// \param latency nanoseconds that an action's result takes to another rank
/// \pre the schedule allows `dims`
timeline predict(const schedule& sch, const shape& dims,
                 const std::function<std::int64_t(const action&)>& cost,
                 const std::function<std::int64_t(const action&)>& latency);

} // namespace troupe
