// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/action.hpp"
#include "schedules/shape.hpp"

#include <cstdint>

// Slot formulas that several schedules of the catalog share.

namespace troupe {

/// The slots of 1F1B, which Chimera, PipeDream and 2BW share.
std::int64_t one_f_one_b_slot(op operation, int stage, int k, const shape& dims);

/// The slots of ZB-H1 and of ZB-H2. \param ahead forwards before the first input
/// gradient, minus one
/// \param lag input gradients before the first weight gradient, minus one
std::int64_t split_slot(op operation, int k, int ahead, int lag);

/// A pattern of the two stages of a rank in a V, which repeats every six slots. Each
/// stage has one F, I and W, without two actions in one slot.
struct v_pattern {
  /// Slots of microbatch 0: the forward on the way there, the forward on the way back,
  /// and the input gradients of both stages.
  std::int64_t forward_there, forward_back, gradient_there, gradient_back;
};

/// The slot of an action in a pattern. Weight gradients take the free slots. \param
/// back whether the stage is on the way back
std::int64_t v_slot(const v_pattern& pattern, op operation, bool back, int k);

} // namespace troupe
