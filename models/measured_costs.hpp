// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/data_set.hpp"
#include "models/network.hpp"
#include "models/weights.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// What one block or layer takes of a microbatch, in seconds.
struct measured_unit {
  double forward, input_gradient, weight_gradient;

  double all() const { return forward + input_gradient + weight_gradient; }
};

/// What a microbatch takes in each of the network's units (as `cut` counts them), by
/// one thread of this machine's CPU: medians of some rounds on the data's first
/// samples. Not the same twice. \param samples of a microbatch, at least 1
std::vector<measured_unit> measured_costs(const network<float>& whole,
                                          const data_set& data,
                                          const weight_source& weights,
                                          std::int64_t samples);

} // namespace troupe
