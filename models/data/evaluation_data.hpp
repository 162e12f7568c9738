// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/data_set.hpp"

#include <memory>

namespace troupe {

/// Returns a data set whose training samples are those of `training`, and whose
/// held-out samples are those of `evaluation`. The identity is of both data sets: the
/// kind names both kinds, and the bytes are the sum of both. The checksum is XXH3 of
/// both checksums, 8 little-endian bytes each.
/// \param shares_samples whether evaluated samples are also trained on
std::shared_ptr<const data_set>
with_evaluation_data(std::shared_ptr<const data_set> training,
                     std::shared_ptr<const data_set> evaluation, bool shares_samples);

} // namespace troupe
