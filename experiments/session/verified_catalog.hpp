// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <vector>

namespace troupe {

/// What verify --all covers: every schedule on tiny models, at awkward sizes, in every
/// kind of mesh, by every exchange and in both clocks. By turns they learn by SGD and
/// AdamW, with momentum, decay, clipping and rates that change.
/// \param asked the same for all of them, as --seed and --precision
std::vector<options> verified_catalog(const options& asked);

/// Whether right runs always hold: not of tensor shards in bf16. They sum in another
/// order than the loop that judges them, and every layer behind rounds that apart, now
/// and then further than a proof may allow.
bool always_holds(const options& one);

} // namespace troupe
