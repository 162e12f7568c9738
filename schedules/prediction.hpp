// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/timeline.hpp"

#include <cstdint>
#include <functional>

namespace troupe {

/// What every rank would do when, by the schedule's orders alone: one loop over the
/// ends of actions, without actors and without weights. The independent opinion against
/// which actors in virtual time are held.
/// \param cost nanoseconds of an action
/// \param latency nanoseconds that an action's result takes to another rank
timeline predict(const schedule& sch, const shape& dims,
                 const std::function<std::int64_t(const action&)>& cost,
                 const std::function<std::int64_t(const action&)>& latency);

} // namespace troupe
