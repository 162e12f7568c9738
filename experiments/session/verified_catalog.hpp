#pragma once

#include "experiments/options/options.hpp"

#include <vector>

namespace troupe {

/// What verify --all covers: every schedule on tiny models, at awkward sizes, in every
/// kind of mesh, by every exchange and in both clocks. By turns they learn by SGD and
/// AdamW, with momentum, decay, clipping and rates that change.
/// \param asked the same for all of them, as --seed and --precision
std::vector<options> verified_catalog(const options& asked);

} // namespace troupe
