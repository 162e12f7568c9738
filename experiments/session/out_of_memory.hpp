// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// Makes a program that runs out of memory end with a sentence and exit code 1, on
/// whichever thread that happens. Libraries in use do not survive a failed allocation.
/// Tensors are excepted: if the memory of a tensor is missing, std::bad_alloc is
/// thrown.
void end_when_out_of_memory(const std::string& program);

} // namespace troupe
