// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Columns of text, as wide as they must be; the first to the left, the others to the
/// right.
std::string in_columns(const std::vector<std::vector<std::string>>& rows);

/// A number as printf's format has it; "-" if it is unknown or not finite.
std::string text(std::optional<double> x, const char* format);

/// The largest of some numbers; "-" if there are none.
template <class Value>
std::string largest(const std::vector<Value>& values) {
  return values.empty() ? "-" : std::to_string(*std::ranges::max_element(values));
}

} // namespace troupe
