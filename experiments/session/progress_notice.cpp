// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/progress_notice.hpp"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace troupe {

namespace {

constexpr int seconds_between_lines = 5;

char text[100];
std::size_t length = 0;

void write_line(int) {
  const int saved_errno = errno;
  if (write(STDERR_FILENO, text, length) < 0) {
    // a failed write loses nothing of importance
  }
  errno = saved_errno;
}

void write_every(int seconds) {
  const itimerval every{{seconds, 0}, {seconds, 0}};
  setitimer(ITIMER_REAL, &every, nullptr);
}

} // namespace

progress_notice::progress_notice(const std::string& line) {
  length = std::min(line.size(), sizeof text - 1);
  if (length == 0)
    return;
  std::copy_n(line.begin(), length, text);
  text[length++] = '\n';
  std::signal(SIGALRM, write_line);
  write_every(seconds_between_lines);
}

progress_notice::~progress_notice() {
  if (length == 0)
    return;
  write_every(0);
  std::signal(SIGALRM, SIG_DFL);
}

} // namespace troupe
