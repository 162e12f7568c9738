// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/data_set.hpp"

#include <memory>

namespace troupe {

/// Training on the samples of one data set, and evaluations on those that another one
/// holds out. The identity is of both: its kind names both kinds, its bytes are their
/// sum, and its checksum is XXH3 of both checksums, 8 little-endian bytes each.
/// \param shares_samples whether samples that are evaluated are trained on too
std::shared_ptr<const data_set>
with_evaluation_data(std::shared_ptr<const data_set> training,
                     std::shared_ptr<const data_set> evaluation, bool shares_samples);

} // namespace troupe
