// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// Makes a program that runs out of memory end with a sentence and exit code 1,
/// wherever that happens: libraries that it uses do not survive it. Tensors are no part
/// of this: where their memory is not there, std::bad_alloc says so.
void end_when_out_of_memory(const std::string& program);

} // namespace troupe
