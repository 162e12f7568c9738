// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/study/study_tables.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The data of the study's page, in JSON: docs/watching.md has the keys.
std::string study_json(const study_plan& plan, const std::vector<measured_run>& runs,
                       const std::vector<study_summary>& summaries);

} // namespace troupe
