// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/files/cells.hpp"

#include <string>
#include <vector>

namespace troupe {

/// What is wrong with the transfers of a file, if it has any; empty if each goes with
/// what it says, and none is missing: activations and gradients between rows are
/// received before their action and sent behind the one that makes them, nothing of a
/// stage runs while its parameters are sharded, and gradients are reduced behind the
/// last of them. \param ranks of stages: the rows they are in
std::string first_wrong_transfer(const std::vector<std::vector<file_cell>>& rows,
                                 const std::vector<int>& ranks);

} // namespace troupe
