// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/data_set.hpp"

#include <memory>

namespace troupe {

/// Returns a data set whose training samples are those of `training`, and whose
/// held-out samples are those of `evaluation`. The identity is of both data sets, and
/// absent if either data set has none. The kind names both kinds, and the bytes are the
/// sum of both. The checksum is XXH3 of both checksums, 8 little-endian bytes each; 0
/// if neither has bytes.
/// \param shares_samples true if evaluated samples are also trained on. Two texts whose
/// identities have equal bytes and checksums count as shared in any case
std::shared_ptr<const data_set>
with_evaluation_data(std::shared_ptr<const data_set> training,
                     std::shared_ptr<const data_set> evaluation, bool shares_samples);

} // namespace troupe
