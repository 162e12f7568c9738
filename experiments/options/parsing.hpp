// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A mistake of the user: one sentence with the mistake and the allowed values.
using problem = tl::unexpected<std::string>;

/// Splits a text at each separator. Parts may be empty, but an empty text has no parts.
std::vector<std::string> split(const std::string& text, char separator);

/// Joins numbers with commas; empty without numbers.
template <class Integer>
std::string joined(const std::vector<Integer>& numbers) {
  std::string result;
  for (const auto number : numbers)
    result += (result.empty() ? "" : ",") + std::to_string(number);
  return result;
}

/// The text of a file without the byte order mark of UTF-8, which some editors write
/// first.
std::string without_byte_order_mark(std::string text);

/// Reads a whole text as a finite number in plain decimal: 12, -0.5 or 1e-3. Absent if
/// the text is no such number.
std::optional<double> decimal(std::string_view text);

/// Reads a whole text as a finite number of at least 0, in plain decimal. Absent if the
/// text is no such number.
std::optional<double> number(std::string_view text);

/// Reads a whole text as a whole number in plain decimal: digits, after a minus if
/// negative. Absent if the text is no such number of this type. A leading 0 is refused,
/// as other programs read 010 as 8.
template <class Integer>
std::optional<Integer> whole_number(std::string_view text) {
  Integer value = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, value);
  const auto digits = text.substr(text.starts_with('-') ? 1 : 0);
  const bool padded = digits.size() > 1 && digits.front() == '0';
  if (failed != std::errc{} || stop != end || padded)
    return {};
  return value;
}

} // namespace troupe
