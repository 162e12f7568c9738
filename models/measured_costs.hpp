// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/data_set.hpp"
#include "models/network.hpp"
#include "models/weights.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Seconds that one block or layer takes for a microbatch, by pass.
struct measured_unit {
  double forward, input_gradient, weight_gradient;

  double total() const { return forward + input_gradient + weight_gradient; }
};

/// The measured seconds of a microbatch in each of the network's units (as `cut` counts
/// units), on one thread of this machine's CPU. Each value is the median of several
/// rounds on the data's first samples. Two calls return different values, as times
/// vary.
/// \param samples of a microbatch, at least 1
std::vector<measured_unit> measured_costs(const network<float>& whole,
                                          const data_set& data,
                                          const weight_source& weights,
                                          std::int64_t samples);

} // namespace troupe
