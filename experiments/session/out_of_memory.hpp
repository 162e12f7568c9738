// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// Sets the program's name for the sentence that is printed when memory runs out. The
/// program then ends with exit code 1, on whichever thread memory is missing, also
/// before this call. Libraries in use do not survive a failed allocation. Tensors are
/// excepted: if the memory of a tensor is missing, std::bad_alloc is thrown.
void end_when_out_of_memory(const std::string& program);

} // namespace troupe
