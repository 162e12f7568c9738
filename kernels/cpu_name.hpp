// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// The model name of this machine's CPU, as /proc/cpuinfo reports the name; "of unknown
/// name" without a report.
std::string name_of_cpu();

} // namespace troupe
