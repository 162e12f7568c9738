// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/report/results.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// What is trained and how it is cut, in one line. \pre runs train
std::string description_of(const setup& shared);

/// What stands below a table of results: what its columns and words mean, and what has
/// no column.
/// \param samples how many the column of losses is of; 0: there are none
std::string results_legend(const setup& shared, const std::vector<run_account>& runs,
                           std::int64_t samples);

} // namespace troupe
