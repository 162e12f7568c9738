// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/batching.hpp"
#include "models/data/data_set.hpp"
#include "models/network.hpp"

namespace troupe {

/// Writes samples of the training one after another.
/// \param length tokens of each sample, with as many labels: the first that the data
/// set gives; 0: all that `whole` takes
void read_samples(const data_set& from, const network<float>& whole, sample_range which,
                  std::int64_t length, const sample_view& to);

} // namespace troupe
