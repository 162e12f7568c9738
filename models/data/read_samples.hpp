// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/batching.hpp"
#include "models/data/data_set.hpp"
#include "models/network.hpp"

namespace troupe {

/// Writes samples of the training to `to`, one after another.
/// \param from data set
/// \param which range of samples
/// \param length number of tokens, and of labels, that are written of each sample, at
/// most whole.rows; later tokens are left out. 0: whole samples
/// \pre the samples are tokens, unless `length` is 0 or whole.rows
void read_samples(const data_set& from, const network<float>& whole, sample_range which,
                  std::int64_t length, const sample_view& to);

} // namespace troupe
