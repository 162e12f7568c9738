// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/patience.hpp"

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

void say(int) {
  const int before = errno;
  if (write(STDERR_FILENO, text, length) < 0) {
    // a failed write loses nothing of importance
  }
  errno = before;
}

void ring_every(int seconds) {
  const itimerval every{{seconds, 0}, {seconds, 0}};
  setitimer(ITIMER_REAL, &every, nullptr);
}

} // namespace

patience::patience(const std::string& line) {
  length = std::min(line.size(), sizeof text - 1);
  if (length == 0)
    return;
  std::copy_n(line.begin(), length, text);
  text[length++] = '\n';
  std::signal(SIGALRM, say);
  ring_every(seconds_between_lines);
}

patience::~patience() {
  if (length == 0)
    return;
  ring_every(0);
  std::signal(SIGALRM, SIG_DFL);
}

} // namespace troupe
