// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// Makes generated text safe for a terminal, byte by byte. Control characters, which
/// would command the terminal, appear by number as \x1b; line breaks and tabs pass. A
/// control character from 128 to 159 is one byte, or C2 and that byte in UTF-8. Within
/// other characters of UTF-8, bytes from 128 to 159 are no commands and pass.
class terminal_text {
public:
  /// Returns the text to print for the next byte.
  std::string operator()(unsigned char byte);

private:
  unsigned char lead_ = 0; // lead byte of an unfinished character
  int to_come_ = 0;        // bytes that the character still lacks
};

} // namespace troupe
