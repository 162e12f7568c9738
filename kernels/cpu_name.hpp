// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// The model name of this machine's CPU, as reported by the operating system.
std::string name_of_cpu();

} // namespace troupe
