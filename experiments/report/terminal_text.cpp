// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/terminal_text.hpp"

#include <cstdio>

namespace troupe {

namespace {

constexpr unsigned char space = 0x20, rubout = 0x7f, first_further = 0x80,
                        last_command = 0x9f, last_further = 0xbf, first_lead = 0xc2,
                        lead_of_three = 0xe0, lead_of_four = 0xf0, last_lead = 0xf4;

/// Number of bytes in a character after its lead byte.
int continuation_bytes(unsigned char lead) {
  return lead < first_lead || lead > last_lead ? 0
         : lead < lead_of_three                ? 1
         : lead < lead_of_four                 ? 2
                                               : 3;
}

} // namespace

std::string terminal_text::operator()(unsigned char byte) {
  bool commands = (byte < space || byte == rubout) && byte != '\n' && byte != '\t';
  if (byte >= first_further && byte <= last_further) {
    const bool within = to_come_ > 0 && lead_ != first_lead;
    commands = byte <= last_command && !within;
    to_come_ = to_come_ > 0 ? to_come_ - 1 : 0;
  } else {
    to_come_ = continuation_bytes(lead_ = byte);
  }
  if (!commands)
    return {static_cast<char>(byte)};
  char text[8];
  std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned>(byte));
  return text;
}

} // namespace troupe
