// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Formats rows as columns of text, each as wide as its longest cell. The first column
/// is left-aligned, the others right-aligned.
std::string in_columns(const std::vector<std::vector<std::string>>& rows);

/// A number in printf's format; "-" if the number is unknown or not finite.
std::string text(std::optional<double> x, const char* format);

/// The largest of some numbers; "-" if there are none.
template <class Value>
std::string largest(const std::vector<Value>& values) {
  return values.empty() ? "-" : std::to_string(*std::ranges::max_element(values));
}

} // namespace troupe
