// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// Makes of a text that nobody has written what a terminal may be told, byte by byte:
/// control characters, which would command it, stand there by their numbers as \x1b,
/// but for line breaks and tabs. Those from 128 to 159 are a byte, or C2 and a byte in
/// UTF-8; within other characters such bytes are no commands.
class terminal_text {
public:
  std::string operator()(unsigned char byte);

private:
  unsigned char lead_ = 0; // of the character that bytes still come of,
  int to_come_ = 0;        // so many
};

} // namespace troupe
