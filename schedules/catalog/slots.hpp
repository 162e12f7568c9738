// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/action.hpp"
#include "schedules/shape.hpp"

#include <cstdint>

// Slot formulas that several schedules of the catalog share.

namespace troupe {

/// The slot of an action under 1F1B, for Chimera, PipeDream and 2BW, too. Operations
/// except F have the slot of B.
/// \param k index of the microbatch, counted as in slot_formula; for Chimera, counted
/// in a unit of the direction
std::int64_t one_f_one_b_slot(op operation, int stage, int k, const shape& dims);

/// The slot of an action under ZB-H1 or ZB-H2.
/// \param ahead number of forwards before the first input gradient, minus one
/// \param lag number of input gradients before the first weight gradient, minus one
std::int64_t split_slot(op operation, int k, int ahead, int lag);

/// A pattern of the two stages of a rank in a V. The pattern repeats every six slots.
/// Each stage has one F, I and W, and no slot has two actions.
struct v_pattern {
  /// Slots of microbatch 0. `_there` is the rank's stage on the way down the V, `_back`
  /// the stage on the way up. `forward` is F, and `gradient` is I.
  std::int64_t forward_there, forward_back, gradient_there, gradient_back;
};

/// The slot of an action in a pattern, for F, I and W. Weight gradients take the free
/// slots.
/// \param back whether the stage is on the way back
std::int64_t v_slot(const v_pattern& pattern, op operation, bool back, int k);

} // namespace troupe
