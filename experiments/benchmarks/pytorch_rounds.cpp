// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/benchmarks/pytorch_rounds.hpp"

#include "experiments/session/interruption.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

namespace troupe {

namespace {

using namespace std::chrono_literals;
using problem = tl::unexpected<std::string>;

constexpr auto time_to_answer = 300s; // for a compiler, or a round
constexpr auto time_to_end = 2s;

/// The path of rounds_in_pytorch.py: beside this program in the build folder, or where
/// the program is installed.
std::filesystem::path program() {
  const auto executable_folder =
    std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto* const folder : {"pytorch", TROUPE_INSTALLED_PYTORCH})
    if (auto file = executable_folder / folder / "rounds_in_pytorch.py";
        std::filesystem::exists(file))
      return file;
  return executable_folder / "pytorch/rounds_in_pytorch.py";
}

/// Descriptors of a process's standard streams; -1: none.
struct streams {
  int in = -1, out = -1, error = -1;
};

/// Starts a program of the search path. Returns the number of the new process, or -1.
pid_t start_process(std::vector<std::string> words, const streams& descriptors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int number = 0;
  for (const int stream : {descriptors.in, descriptors.out, descriptors.error}) {
    if (stream >= 0)
      posix_spawn_file_actions_adddup2(&actions, stream, number);
    else
      posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0);
    ++number;
  }
  std::vector<char*> arguments;
  for (auto& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t result = -1;
  const int failed = posix_spawnp(&result, arguments.front(), &actions, nullptr,
                                  arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? result : -1;
}

/// Waits for the end of a process. Returns whether the process has ended within `time`.
bool ends_within(pid_t process, std::chrono::milliseconds time, int& status) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= until)
      return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

bool has_pytorch(const std::string& python) {
  const auto process =
    start_process({python, "-c", "import torch; torch.__version__"}, {});
  int status = -1;
  if (process < 0)
    return false;
  if (!ends_within(process, 60s, status)) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

tl::expected<std::string, std::string> python_with_pytorch() {
  const auto* const named = std::getenv("PYTHON");
  const bool is_named = named != nullptr && *named != '\0';
  const std::vector<std::string> candidates =
    is_named ? std::vector<std::string>{named}
             : std::vector<std::string>{"python3", "/usr/bin/python3"};
  for (const auto& python : candidates)
    if (has_pytorch(python))
      return python;
  return problem{is_named ? std::string{named}
                              + ", which PYTHON names, has no PyTorch: set PYTHON to "
                                "an interpreter with PyTorch"
                          : "no python3 of this machine has PyTorch: install PyTorch, "
                            "or set PYTHON to an interpreter with PyTorch"};
}

tl::expected<std::unique_ptr<pytorch_rounds>, std::string>
pytorch_rounds::start(const std::string& python,
                      const std::vector<std::string>& options) {
  int in[2], out[2]; // a write to a socket raises no signal
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0)
    return problem{std::string{"cannot make a socket: "} + std::strerror(errno)};
  descriptor requested{in[0]}, requests{in[1]};
  if (pipe2(out, O_CLOEXEC) != 0)
    return problem{std::string{"cannot make a pipe: "} + std::strerror(errno)};
  descriptor answers{out[0]}, answered{out[1]};
  std::vector<std::string> words{python, "-B", program().string()};
  words.insert(words.end(), options.begin(), options.end());
  const auto process = start_process(
    words,
    {.in = requested.number(), .out = answered.number(), .error = answered.number()});
  if (process < 0)
    return problem{"cannot start " + python};
  std::unique_ptr<pytorch_rounds> result{
    new pytorch_rounds{process, std::move(requests), std::move(answers)}};
  answered = descriptor{};
  auto info = result->answer();
  if (!info)
    return problem{info.error()};
  result->info_ = std::move(*info);
  return result;
}

pytorch_rounds::~pytorch_rounds() {
  requests_ = descriptor{}; // the end of the child's input
  int status = 0;
  if (!interruption() && ends_within(process_, time_to_end, status))
    return;
  kill(process_, SIGTERM);
  if (ends_within(process_, time_to_end, status))
    return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

/// The next line that the child writes to the output or error stream. The error is one
/// sentence, or empty if the child has ended.
tl::expected<std::string, std::string> pytorch_rounds::line() {
  const auto until = std::chrono::steady_clock::now() + time_to_answer;
  for (;;) {
    if (const auto end = received_.find('\n'); end != std::string::npos) {
      auto result = received_.substr(0, end);
      received_.erase(0, end + 1);
      return result;
    }
    if (interruption())
      return problem{"interrupted"};
    if (std::chrono::steady_clock::now() >= until)
      return problem{"PyTorch's program has printed nothing for "
                     + std::to_string(time_to_answer / 1s) + " seconds"};
    pollfd waits{.fd = answers_.number(), .events = POLLIN, .revents = 0};
    if (poll(&waits, 1, 100) <= 0)
      continue;
    char more[4096];
    const auto count = read(answers_.number(), more, sizeof more);
    if (count == 0)
      return problem{""};
    if (count > 0)
      received_.append(more, static_cast<std::size_t>(count));
  }
}

/// The next JSON object that the child sends. The error is one sentence: why there is
/// none.
tl::expected<std::string, std::string> pytorch_rounds::answer() {
  std::string last; // of other lines: a warning, or the reason of the child's end
  for (;;) {
    auto next = line();
    if (!next && !next.error().empty())
      return problem{next.error()};
    if (!next)
      return problem{"PyTorch's program has ended" + (last.empty() ? "" : ": " + last)};
    if (!next->starts_with("{")) {
      last = next->empty() ? last : *next;
      continue;
    }
    const auto said = nlohmann::json::parse(*next, nullptr, false);
    if (!said.is_object())
      return problem{"PyTorch's program printed a line that is no JSON: " + *next};
    if (const auto failure = said.find("failed");
        failure != said.end() && failure->is_string())
      return problem{failure->get<std::string>()};
    return std::move(*next);
  }
}

tl::expected<double, std::string> pytorch_rounds::train(int steps) {
  const auto request = std::to_string(steps) + "\n";
  if (send(requests_.number(), request.data(), request.size(), MSG_NOSIGNAL)
      != std::ssize(request))
    return problem{"PyTorch's program has ended"};
  const auto said = answer();
  if (!said)
    return problem{said.error()};
  const auto seconds = nlohmann::json::parse(*said).value("seconds", nlohmann::json{});
  if (!seconds.is_number() || !(seconds.get<double>() > 0))
    return problem{"PyTorch's program printed no time: " + *said};
  return seconds.get<double>();
}

} // namespace troupe
