// local: starts several nodes on this machine and runs a program on them
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/started_program.hpp"
#include "kernels/processor.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr int most_nodes = 64;

int complain(const std::string& why) {
  std::cerr << "local: " << why << '\n';
  return 2;
}

/// A node process that this program has started.
struct started_node {
  pid_t process = -1;
  std::string address; ///< Empty: the node did not start.
  int out = -1;        ///< Output of the node.
};

/// Starts a node at a free port, and reads the address from the node's output. The node
/// ends with this program and receives no Ctrl-C, which the program that leads the run
/// handles.
started_node start_node(int threads, const std::string& device) {
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0)
    return {};
  started_node result{fork(), {}, -1};
  if (result.process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0);
    dup2(pipe[1], STDOUT_FILENO);
    troupe::become({"node", "--listen", "127.0.0.1:0", "--threads",
                    std::to_string(threads), "--device", device});
  }
  close(pipe[1]);
  std::string line;
  for (char c = 0; read(pipe[0], &c, 1) == 1 && c != '\n';)
    line += c;
  constexpr std::string_view prefix = "listening at ";
  if (const auto begin = line.find(prefix); begin != std::string::npos)
    result.address =
      line.substr(begin + prefix.size(),
                  line.find(' ', begin + prefix.size()) - begin - prefix.size());
  result.out = pipe[0];
  return result;
}

/// The GPUs of a node, so that the nodes of a run with --device cuda share the GPUs of
/// the machine. For other values of --device each node may use all GPUs.
std::string device_of(int node, int nodes, const std::vector<std::string>& words) {
  const auto said = std::ranges::find(words, "--device");
  const bool takes_all_gpus =
    said != words.end() && said + 1 != words.end() && said[1] == "cuda";
  const int gpus = takes_all_gpus ? troupe::count_of_gpus() : 0;
  std::string result;
  for (int gpu = node % std::max(gpus, 1); gpu < gpus; gpu += nodes)
    result += (result.empty() ? "cuda:" : ",cuda:") + std::to_string(gpu);
  return result.empty() ? "cuda" : result;
}

volatile std::sig_atomic_t leading_program = 0;

/// Passes a signal that ends this program on to the program that leads the run.
extern "C" void pass_on(int signal) {
  kill(leading_program, signal);
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run(int nodes, std::vector<std::string> words) {
  const int cores = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  std::vector<started_node> started_nodes;
  std::string addresses;
  bool up = true;
  for (int i = 0; i < nodes && up; ++i) {
    started_nodes.push_back(
      start_node(std::max(cores / nodes, 1), device_of(i, nodes, words)));
    up = !started_nodes.back().address.empty();
    addresses += (i > 0 ? "," : "") + started_nodes.back().address;
  }
  int exit_code = 1;
  if (up) {
    words.insert(words.end(), {"--nodes", addresses});
    std::signal(SIGINT, SIG_IGN); // the leading program receives Ctrl-C and ends
    const auto program = fork();
    if (program == 0) {
      std::signal(SIGINT, SIG_DFL);
      troupe::become(words);
    }
    leading_program = program;
    for (const int number : {SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU})
      std::signal(number, pass_on);
    for (const auto& node :
         started_nodes) // after the last fork: discards the output of nodes
      std::thread{[out = node.out] {
        char rest[4096];
        while (read(out, rest, sizeof rest) > 0)
          continue;
      }}.detach();
    int status = 0;
    while (waitpid(program, &status, 0) < 0 && errno == EINTR)
      continue;
    exit_code = exit_code_of(status);
  } else {
    std::cerr << "local: a node did not start\n";
  }
  for (const auto& node : started_nodes)
    if (node.process > 0)
      kill(node.process, SIGTERM);
  for (const auto& node : started_nodes)
    if (node.process > 0)
      waitpid(node.process, nullptr, 0);
  return exit_code;
}

constexpr std::string_view help =
  "Starts N nodes on this machine, runs PROGRAM (train, compare or verify) on the "
  "nodes\n"
  "with PROGRAM's options, and ends the nodes.\n\n"
  "Usage: local N PROGRAM [OPTIONS]\n\n"
  "Example: ./troupe local 2 train --model mlp --steps 20\n\n"
  "General:\n"
  "  -h, --help                   This text.\n"
  "  --help-all                   This text.\n"
  "  --version                    Version of troupe, its compiler and its libraries.\n";

} // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || words.front() == "--help" || words.front() == "--help-all"
      || words.front() == "-h") {
    (words.empty() ? std::cerr : std::cout) << help;
    return words.empty() ? 2 : 0;
  }
  if (words.front() == "--version")
    troupe::become({"train", "--version"});
  int nodes = 0;
  const auto& first = words.front();
  const auto [end, fault] =
    std::from_chars(first.data(), first.data() + first.size(), nodes);
  if (fault != std::errc{} || end != first.data() + first.size() || nodes < 1
      || nodes > most_nodes)
    return complain("'" + first + "' is no number of nodes: say 1 to "
                    + std::to_string(most_nodes));
  words.erase(words.begin());
  const std::vector<std::string> known{"train", "compare", "verify"};
  if (words.empty() || std::ranges::find(known, words.front()) == known.end())
    return complain(
      (words.empty() ? "PROGRAM is missing" : "'" + words.front() + "' is no PROGRAM")
      + std::string{": say train, compare or verify"});
  try {
    return run(nodes, std::move(words));
  } catch (const std::exception& error) {
    std::cerr << "local: " << error.what() << '\n';
    return 1;
  }
}
