// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace troupe {

/// A number as short text for messages: "0.05", "1e+16".
inline std::string short_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

/// The shortest text of the same number: "0.001".
inline std::string exact_text(double value) {
  std::array<char, 32> text{};
  return {text.data(),
          std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

/// Joins numbers with commas; empty without numbers.
template <class Integer>
std::string joined(const std::vector<Integer>& numbers) {
  std::string result;
  for (const auto number : numbers)
    result += (result.empty() ? "" : ",") + std::to_string(number);
  return result;
}

/// The first three texts of a list: "a, b, c and 2 more".
template <class Texts>
std::string first_three(const Texts& texts) {
  constexpr std::size_t most_named = 3;
  std::string result;
  std::size_t named = 0;
  for (const auto& text : texts)
    if (named++ < most_named)
      result += (result.empty() ? "" : ", ") + text;
  return named > most_named
           ? result + " and " + std::to_string(named - most_named) + " more"
           : result;
}

} // namespace troupe
