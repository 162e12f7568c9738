// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/catalog/writer.hpp"

namespace troupe {

/// The program of one batch of DualPipe or DualPipeV, in the eight steps of DeepSeek's
/// repository.
/// \param position of the rank, counted from the end of the pipeline where microbatches
/// of stage 0 of `to` begin
/// \param positions number of positions
/// \param microbatches of each of the two stages
std::vector<action> batch_in_pairs(batch_writer to, int position, int positions,
                                   int microbatches);

} // namespace troupe
