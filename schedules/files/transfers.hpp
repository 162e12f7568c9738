// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/files/cells.hpp"

#include <string>
#include <vector>

// The check of communication cells in schedule files of PyTorch's lowered form.

namespace troupe {

/// One sentence about the first error in the transfers of a file; empty if the file has
/// no error or no transfers. If any row sends or receives, all activations and
/// gradients between rows must be received before the action that reads the values. The
/// values must be sent after the action that makes the values. No action of a stage
/// with UNSHARD runs while the parameters are sharded. Gradients are reduced after the
/// last gradient of the stage.
/// \param ranks the row of each stage
std::string first_wrong_transfer(const std::vector<std::vector<file_cell>>& rows,
                                 const std::vector<int>& ranks);

} // namespace troupe
