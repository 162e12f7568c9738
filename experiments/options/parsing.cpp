// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/parsing.hpp"

#include <cmath>
#include <sstream>

namespace troupe {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream{text};
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  if (!text.empty() && text.back() == separator)
    parts.emplace_back();
  return parts;
}

std::string without_byte_order_mark(std::string text) {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  if (text.starts_with(mark))
    text.erase(0, mark.size());
  return text;
}

std::optional<double> decimal(std::string_view text) {
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, value);
  if (failed != std::errc{} || stop != end || !std::isfinite(value))
    return {};
  return value;
}

std::optional<double> number(std::string_view text) {
  const auto value = decimal(text);
  return value && *value >= 0 ? value : std::nullopt;
}

} // namespace troupe
