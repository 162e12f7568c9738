// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/catalog/writer.hpp"

namespace troupe {

/// Returns the program of a rank for one batch of DualPipe or DualPipeV, in the eight
/// phases of DeepSeek's repository.
/// \param to a writer for the two stages of the rank, without actions
/// \param position distance in ranks from the rank where microbatches of the writer's
/// stage 0 enter the pipeline
/// \param positions number of positions: half of the ranks in DualPipe, else all ranks
/// \param microbatches number of microbatches that each of the two stages runs
/// \pre `microbatches` is at least 2 * `positions`
std::vector<action> batch_in_pairs(batch_writer to, int position, int positions,
                                   int microbatches);

} // namespace troupe
