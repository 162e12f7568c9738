// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/action.hpp"
#include "schedules/shape.hpp"

#include <cstdint>

namespace troupe {

/// 1F1B's slots, which Chimera, PipeDream and 2BW share.
std::int64_t one_f_one_b_slot(op what, int stage, int k, const shape& dims);

/// ZB-H1's, and ZB-H2's. \param ahead forwards before the first input gradient, but one
/// \param behind input gradients before the first weight gradient, but one
std::int64_t split_slot(op what, int k, int ahead, int behind);

/// A pattern that the two stages of a rank in a V repeat every six slots, without two
/// actions in one: each of F, I and W of each stage.
struct v_pattern {
  /// Slots of microbatch 0: of the forward of stage s in the way there, of that in the
  /// way back, and of their input gradients.
  std::int64_t forward_there, forward_back, gradient_there, gradient_back;
};

/// The slot of a pattern's action. Weight gradients take the slots that are free.
/// \param back whether its stage is on the way back
std::int64_t v_slot(const v_pattern& of, op what, bool back, int k);

} // namespace troupe
