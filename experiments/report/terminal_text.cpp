#include "experiments/report/terminal_text.hpp"

#include <cstdio>

namespace troupe {

namespace {

bool commands(unsigned char before, unsigned char byte) {
  constexpr unsigned char space = 0x20, rubout = 0x7f, first = 0x80, last = 0x9f,
                          lead = 0xc2;
  if (byte < space || byte == rubout)
    return byte != '\n' && byte != '\t';
  return byte >= first && byte <= last && (before < first || before == lead);
}

} // namespace

std::string for_terminal(unsigned char before, unsigned char byte) {
  if (!commands(before, byte))
    return {static_cast<char>(byte)};
  char text[8];
  std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned>(byte));
  return text;
}

} // namespace troupe
