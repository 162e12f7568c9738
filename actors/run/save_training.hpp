#pragma once

#include "actors/checkpoints/saved_training.hpp"
#include "actors/mail/handles.hpp"
#include "actors/run/equipment.hpp"

#include <vector>

namespace troupe {

/// What stages hold and optimizers know, put together. \pre all ranks rest
/// \param batches of the run \param parts of all stages
saved_training save_training(const run_plan& plan, int batches,
                             const std::vector<mail::collected>& parts,
                             const equipment& equipped);

} // namespace troupe
