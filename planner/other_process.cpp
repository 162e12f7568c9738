// SPDX-License-Identifier: BSD-3-Clause
#include "planner/other_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string_view>

namespace troupe::planner {

namespace {

constexpr std::string_view end_mark = "\nend"; // behind all bytes

/// Writes all bytes. Returns whether they were written.
bool write_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(to, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// The life of the new process, which ends without the parent's destructors.
[[noreturn]] void compute_and_end(const std::function<std::string()>& compute, int to,
                                  ::pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent)
    ::_exit(1);
  const ::rlimit no_core{0, 0}; // an abort is no news to the user
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::signal(SIGABRT, SIG_DFL);
  if (const int nowhere = ::open("/dev/null", O_WRONLY); nowhere >= 0)
    for (const int printed : {STDOUT_FILENO, STDERR_FILENO})
      ::dup2(nowhere, printed);
  try {
    if (write_all(to, compute()))
      write_all(to, end_mark);
  } catch (...) { // the missing mark tells
  }
  ::_exit(0);
}

/// Reads bytes until their writer has gone or the time is over.
std::string read_until(int from, std::chrono::steady_clock::time_point end) {
  using std::chrono::milliseconds;
  std::string result;
  std::array<char, 4096> some{};
  for (;;) {
    const auto left =
      std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    ::pollfd readable{from, POLLIN, 0};
    const int ready =
      left.count() > 0 ? ::poll(&readable, 1, static_cast<int>(left.count()) + 1) : 0;
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      return result;
    const auto count = ::read(from, some.data(), some.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return result;
    result.append(some.data(), static_cast<std::size_t>(count));
  }
}

} // namespace

std::optional<std::string> in_other_process(const std::function<std::string()>& compute,
                                            double most_seconds) {
  constexpr double longest = 1e6; // seconds, which milliseconds of an int hold
  const double limit = std::clamp(most_seconds, 0., longest);
  const auto end = std::chrono::steady_clock::now()
                   + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                     std::chrono::duration<double>{limit + std::max(1., limit / 4)});
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return {};
  const auto [from, to] = ends;
  const auto parent = ::getpid();
  const auto child = ::fork();
  if (child == 0)
    compute_and_end(compute, to, parent);
  ::close(to);
  auto bytes = child > 0 ? read_until(from, end) : std::string{};
  ::close(from);
  if (child > 0) {
    ::kill(child, SIGKILL); // it has written all, or is too late
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (!bytes.ends_with(end_mark))
    return {};
  bytes.resize(bytes.size() - end_mark.size());
  return bytes;
}

} // namespace troupe::planner
