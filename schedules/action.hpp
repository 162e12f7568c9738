#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace troupe {

/// What a rank does with a microbatch. A backward is an input gradient and then a
/// weight gradient, to the bit.
enum class op : std::uint8_t {
  forward,
  backward,
  input_gradient,
  weight_gradient,
  update,
};

/// How many kinds of op there are.
inline constexpr int op_count = 5;

/// The field's letter: F, B, I, W or U.
char letter_of(op what);

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
