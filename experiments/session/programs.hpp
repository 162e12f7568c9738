// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <string_view>
#include <vector>

namespace troupe {

/// The programs that perform sessions: train, compare and simulate, by name.
const std::vector<program_info>& session_programs();

/// \pre session_programs() has the name
const program_info& session_program(std::string_view name);

} // namespace troupe
