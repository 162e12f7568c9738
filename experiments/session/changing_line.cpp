// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/changing_line.hpp"

#include "experiments/session/throughput.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace troupe {

namespace {

/// Columns of a line that the terminal does not break; the width may change at any
/// time.
std::size_t columns() {
  winsize size{};
  constexpr std::size_t usual = 78;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1
           ? size.ws_col - 1
           : usual;
}

} // namespace

std::string fitting(const std::vector<std::string>& parts, std::size_t width) {
  std::string line;
  for (const auto& part : parts) {
    if (!line.empty() && line.size() + part.size() > width)
      break;
    line += part.substr(0, width);
  }
  return line;
}

changing_line::changing_line(bool quiet, double shown_at)
  : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0), shown_at_(shown_at) {
  // nop
}

bool changing_line::is_due(bool last) {
  const double now = seconds_now();
  if (quiet_ || (!last && now - shown_at_ < (terminal_ ? 0.2 : 5)))
    return false;
  shown_at_ = now;
  return true;
}

void changing_line::write(const std::vector<std::string>& parts, bool stays) {
  put(fitting(parts, terminal_ ? columns() : std::string::npos), stays);
}

void changing_line::put(const std::string& line, bool stays) {
  const bool will_change = terminal_ && !stays;
  if (!terminal_ && line == written_) // a short run's first line is its last
    return;
  written_ = line;
  const auto text = wiped() + line + (will_change ? "" : "\n");
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  changes_ = will_change ? line.size() : 0;
}

void changing_line::end() {
  std::fputs(wiped().c_str(), stderr);
  changes_ = 0;
}

/// The text that erases a changing line.
std::string changing_line::wiped() const {
  return changes_ > 0 ? '\r' + std::string(std::min(changes_, columns()), ' ') + '\r'
                      : "";
}

} // namespace troupe
