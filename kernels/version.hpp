// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// The version of troupe: "0.1.0".
std::string version();

} // namespace troupe
