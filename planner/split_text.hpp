// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Texts of parts with a separator, as "mk,kn" or "m|-".

#include <string>
#include <string_view>
#include <vector>

namespace troupe::planner {

/// The parts between separators, one more than there are separators.
inline std::vector<std::string> split_text(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char letter : text)
    if (letter == separator)
      parts.emplace_back();
    else
      parts.back() += letter;
  return parts;
}

} // namespace troupe::planner
