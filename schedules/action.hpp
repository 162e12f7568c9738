// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <string>

// Actions: the entries in the program of a rank. An action is an operation at a stage,
// on a microbatch; an update covers one or more microbatches.

namespace troupe {

/// The kind of work of an action. A backward computes an input gradient and then a
/// weight gradient, with the same bits as two separate actions. A recomputation runs
/// the forward again for the next backward, where stages stash only inputs.
enum class op : std::uint8_t {
  forward,
  backward,
  input_gradient,
  weight_gradient,
  update,
  recompute,
};

/// Number of kinds of `op`.
inline constexpr int op_count = 6;

/// The letter of an operation: F, B, I, W, U or R.
/// \throws std::logic_error for a value outside of the enumeration
char letter_of(op operation);

/// True for F and R, which run a stage from input to output.
inline bool goes_forward(op operation) {
  return operation == op::forward || operation == op::recompute;
}

/// True for B and I, which receive the gradient of a stage's output.
inline bool goes_back(op operation) {
  return operation == op::backward || operation == op::input_gradient;
}

/// True for B and W, which add to the gradients of the next update.
inline bool adds_gradient(op operation) {
  return operation == op::backward || operation == op::weight_gradient;
}

/// The place of an action in a pair. A rank runs the two actions of a pair as one, as
/// DualPipe does with a forward and a backward. The pair starts when both actions have
/// inputs. Both outputs exist when both actions have ended.
enum class in_pair : std::uint8_t { no, first, second };

/// One action of one rank.
struct action {
  troupe::op op;
  /// Index of the schedule's direction, from 0; above 0 only in schedules with several
  /// directions.
  int direction;
  int stage; ///< Index of the stage; stage 0 holds the first layers.
  /// Index of the microbatch, counted over the run from 0. Of an update: the highest
  /// microbatch that the update covers, over all directions. Under a local rule: the
  /// microbatch of the stage's last backward.
  int microbatch;
  in_pair pair = in_pair::no;

  auto operator<=>(const action&) const = default;
};

/// Returns the name of an action: "F3", or "F3 of stage 2" if `with_stage` is set. The
/// longer form adds " (replica d)" in a direction d above 0.
std::string to_string(const action& a, bool with_stage = false);

} // namespace troupe
