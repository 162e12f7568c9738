#pragma once

#include <string>

namespace troupe {

/// How a terminal is told a byte of a text that nobody has written: control characters,
/// which would command it, by their numbers as \x1b; but line breaks and tabs as they
/// are. Those of ASCII are one byte, those from 128 to 159 are C2 and another in UTF-8.
/// \param before the byte before it, or 0
std::string for_terminal(unsigned char before, unsigned char byte);

} // namespace troupe
