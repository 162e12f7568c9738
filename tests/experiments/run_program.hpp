// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tests/temporary_folder.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

/// A program's exit code, standard output and standard error.
struct ending_of_program {
  int exit_code;
  std::string out, err;
};

/// The path of a built program; each test defines this function.
std::string program_path(const std::string& name);

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

/// Runs a shell command in `folder`; the built programs are in the command's PATH.
inline ending_of_program run_shell_in(const temporary_folder& folder,
                                      const std::string& command) {
  const auto programs = std::filesystem::path{program_path("train")}.parent_path();
  folder.write("command", command);
  const auto whole = "cd '" + folder.path().string() + "' && PATH='" + programs.string()
                     + "':$PATH sh ./command >out 2>err </dev/null";
  const int status = std::system(whole.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          content_of(folder.path() / "out"), content_of(folder.path() / "err")};
}

/// Runs one of the programs in `folder`, with the options that a user would type.
/// \param typed the program's name and options
/// \param before a shell command that runs first
inline ending_of_program run_program_in(const temporary_folder& folder,
                                        const std::string& typed,
                                        const std::string& before = "true") {
  const auto command = before + " && cd '" + folder.path().string() + "' && '"
                       + program_path(typed.substr(0, typed.find(' '))) + "' "
                       + typed.substr(std::min(typed.find(' '), typed.size()))
                       + " >out 2>err </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          content_of(folder.path() / "out"), content_of(folder.path() / "err")};
}

/// Runs a program until standard error has some text, then sends `signal` to the
/// program.
/// \param ignored whether the signal was ignored when the program began, as under nohup
/// \param awaited the text before the signal; empty: any text
inline int exit_code_after(int signal, std::vector<std::string> words,
                           bool ignored = false, const std::string& awaited = "") {
  int ends[2];
  if (pipe(ends) != 0)
    throw std::runtime_error("no pipe");
  words[0] = program_path(words[0]);
  std::vector<char*> arguments;
  for (auto& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(signal, ignored ? SIG_IGN : SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::freopen("/dev/null", "w", stdout);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  bool is_sent = false;
  char part[4096];
  for (ssize_t size = 0; (size = read(ends[0], part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(size));
    if (!is_sent && text.find(awaited) != std::string::npos) {
      kill(child, signal);
      is_sent = true;
    }
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
