// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tests/experiments/run_program.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// A started program; the destructor kills the program.
class started {
public:
  started(const temporary_folder& where, const std::string& name,
          std::vector<std::string> words)
    : out_(where.path() / (name + ".out")) {
    std::ofstream{out_}; // empties the output of an earlier program of that name
    words[0] = program_path(words[0]);
    std::vector<char*> arguments;
    for (auto& word : words)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      const int out = open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
      if (chdir(where.path().c_str()) != 0)
        _exit(126);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
  }
  ~started() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
  }
  started(started&& other) noexcept
    : out_(std::move(other.out_)), process_(std::exchange(other.process_, -1)) {}
  started& operator=(started&&) = delete;

  void send(int signal) const { kill(process_, signal); }
  std::string said() const { return content_of(out_); }

  /// Waits for the end, and returns the exit code; -1 if the program does not end in
  /// time.
  int wait(std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    int status = 0;
    while (std::chrono::steady_clock::now() < until) {
      if (waitpid(process_, &status, WNOHANG) == process_) {
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    return -1;
  }

private:
  std::filesystem::path out_;
  pid_t process_;
};

inline std::vector<std::string> words_of(const std::string& typed) {
  std::istringstream stream{typed};
  std::vector<std::string> result;
  for (std::string word; stream >> word;)
    result.push_back(word);
  return result;
}

/// Started nodes, each at a port that was free.
struct started_nodes {
  started_nodes(const temporary_folder& where, int count,
                const std::string& more = "") {
    for (int i = 0; i < count; ++i) {
      all.emplace_back(where, "node" + std::to_string(i),
                       words_of("node --listen 127.0.0.1:0 --threads 1 " + more));
      const std::string before = "listening at ";
      std::string said;
      for (int looks = 0; looks < 4000 && said.find(" with ") == std::string::npos;
           ++looks) {
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
        said = all.back().said();
      }
      const auto begin = said.find(before) + before.size();
      list.push_back(said.substr(begin, said.find(' ', begin) - begin));
    }
  }

  std::string addresses() const {
    std::string result;
    for (const auto& one : list)
      result += (result.empty() ? "" : ",") + one;
    return result;
  }

  std::vector<started> all;
  std::vector<std::string> list;
};
