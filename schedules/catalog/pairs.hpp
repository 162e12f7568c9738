// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/catalog/writer.hpp"

namespace troupe {

/// DualPipe's program, and DualPipeV's, in the eight steps of DeepSeek's repository.
/// \param place of the rank, from the end of the pipeline where a microbatch of its
/// stage 0 begins \param places there are
/// \param microbatches of each of the two stages
std::vector<action> batch_in_pairs(batch_writer to, int place, int places,
                                   int microbatches);

} // namespace troupe
