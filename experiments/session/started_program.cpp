// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/started_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

namespace troupe {

namespace {

/// A pipe, of which both ends are closed in programs that this process starts.
struct pipe_ends {
  pipe_ends() {
    std::array<int, 2> made{};
    if (pipe2(made.data(), O_CLOEXEC) != 0)
      throw std::system_error{errno, std::generic_category()};
    from = made[0];
    to = made[1];
  }

  ~pipe_ends() {
    close(from);
    close_writer();
  }

  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;

  void close_writer() {
    if (to >= 0)
      close(to);
    to = -1;
  }

  int from = -1, to = -1;
};

/// Appends available bytes. Returns false at the end of the output.
bool read_some(int from, std::string& to) {
  std::array<char, 65536> bytes; // NOLINT: filled by read
  const auto count = read(from, bytes.data(), bytes.size());
  if (count > 0)
    to.append(bytes.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

/// The arguments of execv(), which only reads the words.
std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const auto& word : words)
    result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

} // namespace

std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

void become(const std::vector<std::string>& words) {
  const auto path = (program_folder() / words.front()).string();
  const auto arguments = pointers_to(words);
  execv(path.c_str(), arguments.data());
  const auto text = "cannot start " + path + ": " + std::strerror(errno) + "\n";
  (void)!write(STDERR_FILENO, text.data(), text.size());
  std::_Exit(127);
}

bool ended_program::exited() const {
  return WIFEXITED(status);
}

int ended_program::exit_code() const {
  return WEXITSTATUS(status);
}

int ended_program::signal() const {
  return WTERMSIG(status);
}

ended_program run_to_end(const std::vector<std::string>& words,
                         const std::atomic<bool>& interrupted) {
  pipe_ends out, err;
  // Between fork() and execv() only functions that are safe in signal handlers run, as
  // other threads may hold locks.
  const auto path = (program_folder() / words.front()).string();
  const auto arguments = pointers_to(words);
  const auto parent = getpid();
  const auto process = fork();
  if (process < 0)
    throw std::system_error{errno, std::generic_category()};
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(127);
    setpgid(0, 0);
    dup2(out.to, STDOUT_FILENO);
    dup2(err.to, STDERR_FILENO);
    execv(path.c_str(), arguments.data());
    constexpr std::string_view why = "the program cannot be started\n";
    (void)!write(STDERR_FILENO, why.data(), why.size());
    _exit(127);
  }
  out.close_writer();
  err.close_writer();
  ended_program result{};
  bool passed_on = false;
  for (std::array open{pollfd{out.from, POLLIN, 0}, pollfd{err.from, POLLIN, 0}};
       open[0].fd >= 0 || open[1].fd >= 0;) {
    constexpr int milliseconds = 100;
    if (poll(open.data(), open.size(), milliseconds) < 0 && errno != EINTR)
      break;
    for (auto& source : open)
      if (source.fd >= 0 && (source.revents & (POLLIN | POLLHUP | POLLERR)) != 0
          && !read_some(source.fd, source.fd == out.from ? result.out : result.err))
        source.fd = -1;
    if (interrupted && !passed_on)
      passed_on = kill(process, SIGINT) == 0;
  }
  while (waitpid(process, &result.status, 0) < 0 && errno == EINTR)
    continue;
  return result;
}

} // namespace troupe
