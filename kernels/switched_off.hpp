// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>
#include <string_view>

namespace troupe {

/// True if the environment variable is "off", for a feature that is otherwise on.
inline bool switched_off(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && std::string_view{value} == "off";
}

} // namespace troupe
