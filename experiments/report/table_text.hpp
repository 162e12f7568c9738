// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Formats rows as columns of text. A column is as wide as its longest cell, in bytes.
/// The first column is left-aligned, all further columns are right-aligned.
std::string in_columns(const std::vector<std::vector<std::string>>& rows);

/// A number in printf's format, cut to 63 bytes; "-" if the number is absent or not
/// finite.
std::string text(std::optional<double> x, const char* format);

/// The largest of `values` as text; "-" if there are none.
template <class Value>
std::string largest(const std::vector<Value>& values) {
  return values.empty() ? "-" : std::to_string(*std::ranges::max_element(values));
}

} // namespace troupe
