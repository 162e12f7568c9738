// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/optimizers/adamw.hpp"
#include "kernels/optimizers/nadam.hpp"
#include "kernels/optimizers/sgd.hpp"

#include <variant>

// The list of updates that treat each value by itself, on the CPU and on a GPU.

namespace troupe {

/// An update of values: a function of a value's gradient, of the gradient's factor
/// `scale`, of the value, and of the value's state, which the function changes. Returns
/// the new value.
using value_update =
  std::variant<sgd_update, momentum_update, adamw_update, nadam_update>;

} // namespace troupe
