// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <vector>

namespace troupe {

/// The runs of verify --all: the catalog's schedules on tiny models, at unusual sizes,
/// in many meshes and in both clocks. The runs use the exchanges of the catalog;
/// hogwild is used in virtual time alone. The runs use SGD and AdamW in rotation, with
/// momentum, decay, clipping and changing rates.
/// \param asked has the options that all runs share: --seed, --precision,
/// --stall-timeout and options of output
std::vector<options> verified_catalog(const options& asked);

/// True if the proofs of a correct run always hold. False for tensor shards in bf16:
/// shards sum in another order than the plain loop, and every later layer rounds the
/// difference further. The difference sometimes exceeds the tolerance of a proof.
bool always_holds(const options& asked);

} // namespace troupe
