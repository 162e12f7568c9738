// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace troupe {

/// What a rank does with a microbatch. A backward is an input gradient and then a
/// weight gradient, to the bit. A recomputation is the forward once more, for the
/// backward behind it, where stages keep no more than their inputs.
enum class op : std::uint8_t {
  forward,
  backward,
  input_gradient,
  weight_gradient,
  update,
  recompute,
};

/// How many kinds of op there are.
inline constexpr int op_count = 6;

/// The field's letter: F, B, I, W, U or R.
char letter_of(op what);

/// Whether it runs a stage from its input up.
inline bool goes_forward(op what) {
  return what == op::forward || what == op::recompute;
}

/// Whether it begins with the gradient of a stage's output.
inline bool goes_back(op what) {
  return what == op::backward || what == op::input_gradient;
}

/// Whether it adds to the gradients of an update.
inline bool adds_gradient(op what) {
  return what == op::backward || what == op::weight_gradient;
}

/// Whether a rank runs an action as one with the next one or the last one of its
/// program, as DualPipe does a forward and a backward: the first begins when both have
/// their inputs, and both have their outputs when both have ended.
enum class in_pair : std::uint8_t { no, first, second };

/// One step of one rank.
struct action {
  op what;
  int direction; ///< Of the schedule: 0, or more where pipelines go several ways.
  int stage;     ///< 0 holds the first layers.
  int
    microbatch; ///< Counted over the whole run; of an update: the last that it covers.
  in_pair pair = in_pair::no;

  auto operator<=>(const action&) const = default;
};

/// "F3", or "F3 of stage 2" when `with_stage` is set.
std::string to_string(const action& a, bool with_stage = false);

} // namespace troupe
