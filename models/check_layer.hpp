// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/user_layer.hpp"

#include <cstdint>
#include <string>

// The check of a user's layer by finite differences.

namespace troupe {

/// How check_layer() checks a layer.
struct layer_check {
  /// Samples of the larger microbatch; a smaller one has one sample. At least 1.
  std::int64_t samples = 3;
  /// Above 0: the layer reads tokens, each below this number, and has no dx.
  std::int32_t words = 0;
  /// Largest difference of a gradient from finite differences, relative to the largest
  /// of these.
  double tolerance = 0.01;
  /// Most values of an array whose gradients are compared, drawn at random.
  std::int64_t most_values = 64;
  std::uint64_t seed = 1; ///< Seed of inputs, parameters and drawn values.
};

/// Checks the passes of a user's layer at random inputs and parameters. Passes write
/// all of their outputs, nothing outside, and no input. Gradients read no array of the
/// forward but x and `saved`. Two forwards of one input have equal bits. The values of
/// dx and the gradients of parameters are those of finite differences of the forward. A
/// weight gradient with user_pass::adds adds. An input gradient without dx leaves the
/// weight gradient the same. Two microbatches are interleaved: both forwards, both
/// input gradients, both weight gradients. Their bits are those of one after another.
///
/// Values at which the forward has a kink, such as that of a ReLU, are left out.
/// Returns one sentence about the first difference, else an empty text. An exception of
/// a pass is such a difference. The call runs at most 10 * most_values forwards for
/// each array, on the caller's thread.
/// \pre `samples`, `most_values` and `tolerance` are above 0
std::string check_layer(const user_layer& layer, const layer_check& how = {});

} // namespace troupe
