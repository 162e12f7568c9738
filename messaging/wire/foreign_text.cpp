// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/wire/foreign_text.hpp"

#include <cstdio>

namespace troupe::wire {

namespace {

/// A character of UTF-8 (RFC 3629): number, and length in bytes. Length 0: no valid
/// character.
struct character {
  char32_t number = 0;
  std::size_t bytes = 0;
};

character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto first_byte = byte(0);
  if (first_byte < 0x80)
    return {first_byte, 1};
  const std::size_t bytes = first_byte >= 0xf0 ? 4 : first_byte >= 0xe0 ? 3 : 2;
  if (first_byte < 0xc2 || first_byte > 0xf4 || text.size() < bytes)
    return {};
  char32_t number = first_byte & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80)
      return {};
    number = number << 6U | (byte(i) & 0x3fU);
  }
  const bool too_long =
    (bytes == 3 && number < 0x800) || (bytes == 4 && number < 0x10000);
  const bool surrogate = number >= 0xd800 && number <= 0xdfff;
  return too_long || surrogate || number > 0x10ffff ? character{}
                                                    : character{number, bytes};
}

bool is_within(char32_t number, char32_t first, char32_t last) {
  return number >= first && number <= last;
}

/// True for control characters (C0, C1, line and paragraph ends) and for characters
/// that change the direction of writing.
bool is_command(char32_t number) {
  return number < 0x20 || is_within(number, 0x7f, 0x9f) || number == 0x61c
         || number == 0x200e || number == 0x200f || is_within(number, 0x2028, 0x202e)
         || is_within(number, 0x2066, 0x2069) || number == 0xfeff;
}

} // namespace

std::string foreign_text(std::string_view text, line_breaks breaks) {
  std::string result;
  const auto size = text.size();
  const auto suffix = ".. (" + std::to_string(size) + " bytes)";
  std::size_t cut = 0; // the longest prefix that leaves space for the suffix
  while (!text.empty()) {
    if (result.size() + suffix.size() <= most_foreign_bytes)
      cut = result.size();
    if (result.size() > most_foreign_bytes)
      break;
    const auto next = first_of(text);
    const bool breaks_line = next.number == '\n' && breaks == line_breaks::kept;
    if (next.bytes > 0 && (breaks_line || !is_command(next.number))) {
      result += text.substr(0, next.bytes);
      text.remove_prefix(next.bytes);
      continue;
    }
    char number[8];
    std::snprintf(number, sizeof number, "\\x%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(text.front())));
    result += number;
    text.remove_prefix(1);
  }
  return result.size() <= most_foreign_bytes ? result : result.substr(0, cut) + suffix;
}

} // namespace troupe::wire
