// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// Sets the program's name for the sentence that is printed when `new` finds no memory.
/// After the sentence the program ends with exit code 1, as some libraries do not
/// survive a failed allocation. This holds on every thread, and also before this call,
/// but then the sentence has no name. Tensors are excepted: if the memory of a tensor
/// is missing, std::bad_alloc is thrown.
void end_when_out_of_memory(const std::string& program);

} // namespace troupe
