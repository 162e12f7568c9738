// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "kernels/weight_place.hpp"
#include "schedules/action.hpp"

#include <cstdint>
#include <optional>

namespace troupe::mail {

/// What an expert computes an action with; the stage that it stands with lends it.
struct expert_loan {
  weight_place<float> parameters;
  buffer gradients; ///< Of backwards and weight gradients.
  int version;
  bool begins_sum; ///< Its gradients are the first of an update.
};

/// Stage to expert: rows that its gate chose for the expert. A backward's are
/// gradients; a weight gradient only says how many there were.
struct rows_to_expert {
  action what; ///< That waits for them: F, R, B, I or W.
  int source;  ///< The data replica among those that share the experts out.
  std::int64_t rows;
  buffer payload;                  ///< Empty if there are none.
  std::optional<expert_loan> loan; ///< From the stage on the expert's own rank.
};

/// Expert to stage: its outputs, or the gradients of its inputs, in the rows' order;
/// nothing of a weight gradient.
struct rows_from_expert {
  int expert; ///< Among those of the stage.
  buffer payload;
};

} // namespace troupe::mail
