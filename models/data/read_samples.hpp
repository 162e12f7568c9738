// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/batching.hpp"
#include "models/data/data_set.hpp"
#include "models/network.hpp"

namespace troupe {

/// Writes samples of the training to `to`, one after another.
/// \param from data set
/// \param which range of samples
/// \param length number of tokens of each sample, and of its labels; later tokens are
/// left out. 0: the length of `whole`
void read_samples(const data_set& from, const network<float>& whole, sample_range which,
                  std::int64_t length, const sample_view& to);

} // namespace troupe
