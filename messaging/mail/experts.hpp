// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "kernels/weight_place.hpp"
#include "schedules/action.hpp"

#include <cstdint>
#include <optional>

// Messages between a stage and the experts of the stage's layers.

namespace troupe::mail {

/// The arrays with which an expert computes an action. The stage on the expert's rank
/// lends the arrays until the action ends.
struct lent_arrays {
  weight_place<float> parameters;
  buffer gradients; ///< For the gradients of a B or W; empty in other actions.
  int version;
  /// True if the gradients are the first since the last update: the expert overwrites
  /// the buffer. False: the expert adds to the buffer.
  bool begins_sum;
};

/// Stage to expert: rows that the stage's gate chose for the expert. In a backward or
/// an input gradient, the rows are gradients of the expert's outputs. A weight gradient
/// sends only the number of rows.
struct rows_to_expert {
  troupe::action
    action; ///< The stage's action that waits for the rows: F, R, B, I or W.
  /// Index of the sending stage's data replica in the group of replicas over which the
  /// experts are sharded.
  int source;
  std::int64_t rows;
  /// Empty if there are no rows, in a weight gradient, or where nothing is computed.
  buffer payload;
  /// Arrays from the stage on the expert's own rank; absent from other stages.
  std::optional<lent_arrays> loan;
};

/// Expert to stage: outputs, or gradients of inputs, in the order of the rows. The
/// payload is empty if there are no rows, in the answer to a weight gradient, or where
/// nothing is computed.
struct rows_from_expert {
  int expert; ///< Index among the stage's experts.
  buffer payload;
};

} // namespace troupe::mail
