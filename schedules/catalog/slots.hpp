#pragma once

#include "schedules/action.hpp"
#include "schedules/shape.hpp"

#include <cstdint>

namespace troupe {

/// 1F1B's slots, which Chimera, PipeDream and 2BW share.
std::int64_t one_f_one_b_slot(op what, int stage, int k, const shape& dims);

} // namespace troupe
