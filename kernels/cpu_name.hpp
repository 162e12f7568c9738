// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// The model of this machine's CPU, as the system calls it.
std::string name_of_cpu();

} // namespace troupe
