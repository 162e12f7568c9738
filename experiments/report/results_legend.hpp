// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/report/results.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// One line: the model and the data, and the numbers of stages, shards, replicas,
/// microbatches and steps.
/// \pre the runs train
std::string description_of(const setup& shared);

/// The text below a table of results: the meaning of its columns and words, and facts
/// that have no column.
/// \param samples number of samples in the column of losses; 0: there are no losses
std::string results_legend(const setup& shared, const std::vector<run_account>& runs,
                           std::int64_t samples);

} // namespace troupe
