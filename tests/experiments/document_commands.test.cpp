// SPDX-License-Identifier: BSD-3-Clause
// Every command of README.md and docs runs, in the document's order, in a folder for
// each document. Long trainings are shortened. Commands that do not run here are listed
// with the reason; the test checks that each program has each option of such a command.

#include "tests/experiments/documents.hpp"
#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace troupe::document_commands_test {

namespace fs = std::filesystem;
using words = std::vector<std::string>;

namespace {

const fs::path root = fs::path{TROUPE_GOLDEN} / ".." / "..";

std::vector<fs::path> all_documents() {
  std::vector<fs::path> result{root / "README.md"};
  for (const auto& entry : fs::directory_iterator{root / "docs"})
    if (entry.path().extension() == ".md")
      result.push_back(entry.path());
  std::ranges::sort(result);
  return result;
}

/// Documents whose commands run; with sanitizers README.md alone.
std::vector<fs::path> run_documents() {
#ifdef TROUPE_SANITIZED
  return {root / "README.md"};
#else
  return all_documents();
#endif
}

/// Commands that a test cannot run, and the reason.
struct exception {
  const char* pattern;
  const char* why;
};

constexpr exception exceptions[] = {
  {R"(\.\.( |$)|[A-Z]{3,}( |$)|\.\.\.)", "a form with places to fill in"},
  {R"(^\./troupe (test|gpu-check))", "runs the tests themselves; tests/experiments/"
                                     "gpu_check runs gpu-check with stand-ins"},
  {R"(^\./troupe python)", "starts an interpreter; tests/experiments/python runs the "
                           "programs of docs/python.md"},
  {R"(^docs/)", "needs a browser; tests/experiments/page runs one where there is one"},
  {R"(--device cuda)", "needs a GPU"},
  {R"(--beside pytorch)", "needs PyTorch"},
  {R"(^\./troupe verify --all)", "takes minutes; a slow test of its own"},
  {R"(^\./troupe bench)", "takes minutes; measuring_programs.test.cpp runs it on tiny "
                          "sizes"},
  {R"(^\./troupe node )", "runs until it is ended; nodes.test.cpp starts nodes"},
  {R"(--nodes )", "needs other machines; nodes.test.cpp runs nodes on this one"},
  {R"(file:wrong\.csv)", "fails on purpose; documents.test.cpp compares its output"},
};

std::optional<std::string> exception_of(const std::string& command) {
  for (const auto& [pattern, why] : exceptions)
    if (std::regex_search(command, std::regex{pattern}))
      return why;
  return {};
}

std::string replaced(const std::string& text, const std::string& pattern,
                     const std::string& by) {
  return std::regex_replace(text, std::regex{pattern}, by);
}

/// The number after an option; 0 if the option is absent.
long number_of(const std::string& command, const std::string& option) {
  std::smatch found;
  return std::regex_search(command, found, std::regex{option + " ([0-9]+)"})
           ? std::stol(found[1])
           : 0;
}

/// Returns the command with `instead` for an option's number above `most`.
std::string limited(const std::string& command, const std::string& option, long most,
                    long instead) {
  return number_of(command, option) > most ? replaced(
           command, option + " [0-9]+", option + " " + std::to_string(instead))
                                           : command;
}

/// Returns a shortened command: a moment of work, where the document's takes minutes.
std::string shortened(std::string command) {
  const auto says = [&](const char* option) {
    return command.find(option) != std::string::npos;
  };
  const bool trains =
    std::regex_search(command, std::regex{R"(^\./troupe (local 2 )?(train|compare))"})
    || (command.starts_with("./troupe study")
        && !command.starts_with("./troupe study simulate"));
  if (trains) {
    const auto steps = number_of(command, "--steps");
    command = replaced(command, "--epochs [0-9]+", "--steps 2");
    if (steps > 0)
      command = replaced(command, "--steps [0-9]+",
                         "--steps " + std::to_string(std::max(2L, steps / 250)));
    else if (!says("--steps") && !says("--resume"))
      command += " --steps 2";
    if (!says("--evaluate-samples"))
      command += " --evaluate-samples 8";
    if (!says("--d-model") && !says("lenet") && !says("--init")
        && !says("--resume mine"))
      command += " --d-model 32";
  }
  if (command.starts_with("./troupe study")) { // two values of an option, and one seed
    command = replaced(command, "--seeds [0-9]+", "--seeds 1");
    command = replaced(command, R"((--vary [a-z-]+=[^, ]+,[^, ]+)[^ ]*)", "$1");
    if (!says("--schedule"))
      command += " --schedules gpipe,pipedream";
  }
  if (command.starts_with("./troupe memory") && !says("--d-model"))
    command += " --d-model 32";
  if (command.starts_with("./troupe verify") && !says("--steps"))
    command += " --steps 2";
  if (command.starts_with("./troupe evaluate") && !says("--samples"))
    command += " --samples 8";
  command = limited(command, "--d-model", 64, 32);
  command = limited(command, "--seq", 64, 16);
  command = limited(command, "--tokens", 64, 8);
  command = limited(command, "--stages", 64, 16);
  command = limited(command, "--ranks", 256, 16);
  return limited(command, "--microbatches", 256, 32);
}

/// A folder with the files that the documents' commands read.
struct workplace : temporary_folder {
  workplace() {
    const auto programs = fs::path{program_path("train")}.parent_path();
    write("troupe", "#!/bin/sh\nname=$1\nshift\nexec '" + programs.string()
                      + "'/\"$name\" \"$@\"\n");
    fs::permissions(path() / "troupe", fs::perms::owner_all);
    fs::create_directory(path() / "experiments");
    fs::create_directory_symlink(TROUPE_DATA, path() / "experiments" / "data");
    fs::create_directory_symlink(root / "examples", path() / "examples");
    const auto text = content_of(fs::path{TROUPE_DATA} / "emma.txt").substr(0, 9000);
    write("mine.txt", text);
    std::string tokens;
    for (const char c : text)
      tokens += {c, '\0'};
    write("train.bin", tokens);
    run("./troupe simulate --schedule 1f1b --export mine.csv --quiet");
    fs::create_directory(path() / "gpt2");
    run("./troupe train --layers 4 --d-model 8 --heads 2 --seq 16 --steps 1 --quiet "
        "--evaluate-samples 0 --save gpt2/model.safetensors");
  }

  void run(const std::string& command) const {
    const auto ran = run_shell_in(*this, command);
    INFO(command << "\n" << ran.out << ran.err);
    CHECK(ran.exit_code == 0);
  }
};

words options_of(const std::string& command) {
  static const std::regex option{"(^| )(--[a-z][a-z-]*)"};
  words result;
  for (std::sregex_iterator i{command.begin(), command.end(), option}, end; i != end;
       ++i)
    result.push_back((*i)[2]);
  return result;
}

/// The full help of a program; empty if no such program exists.
const std::string& help_of(const std::string& program) {
  static std::map<std::string, std::string> known;
  const auto [place, is_new] = known.try_emplace(program);
  if (is_new && fs::exists(program_path(program))) {
    const temporary_folder folder;
    auto ran = run_program_in(folder, program + " --help-all");
    if (ran.exit_code != 0)
      ran = run_program_in(folder, program + " --help");
    place->second = ran.out;
  }
  return place->second;
}

/// Checks that a command's program has all options of the command. Words of the script
/// itself are not programs.
void check_options(const std::string& command) {
  if (!command.starts_with("./troupe "))
    return;
  const auto name = command.substr(9, command.find(' ', 9) - 9);
  static const std::set<std::string> no_programs{"NAME", "gpu-check", "help", "python",
                                                 "test"};
  if (no_programs.contains(name))
    return;
  const auto& help = help_of(name);
  INFO(command);
  CHECK_FALSE(help.empty());
  for (const auto& option : options_of(command)) {
    INFO(option);
    CHECK((option == "--help" || std::regex_search(help, std::regex{option + "\\b"})));
  }
}

/// Whether documents.test.cpp runs the command unchanged.
bool runs_elsewhere(const std::string& command) {
  return command.starts_with("./troupe simulate ")
         && command.find("file:") == std::string::npos
         && command.find("--export") == std::string::npos
         && command.find("--report") == std::string::npos;
}

std::set<std::string> simulated_elsewhere() {
  std::set<std::string> result;
  for (const auto& document : all_documents())
    for (const auto& part : documents::sections_of(document)) {
      for (const auto& one : part.commands)
        if (runs_elsewhere(one.text))
          result.insert(one.text);
      for (const auto& one : part.pictures)
        result.insert(one.command);
    }
  return result;
}

} // namespace

TEST_CASE("every command of the documents runs", "[documents]") {
  const auto elsewhere = simulated_elsewhere();
  std::set<std::string> done; // commands of all documents
  int count = 0;
  for (const auto& document : run_documents()) {
    std::optional<workplace> folder;
    for (const auto& command : documents::commands_in(document)) {
      INFO(document.filename().string() << ": " << command);
      if (exception_of(command)) {
        check_options(command);
        continue;
      }
      // An earlier command of a document may write the files that a later one reads.
      const bool keeps = command.find("--save") != std::string::npos
                         || command.find("--checkpoint") != std::string::npos;
      if (elsewhere.contains(command) || (!keeps && !done.insert(command).second))
        continue;
      if (!folder)
        folder.emplace();
      ++count;
      folder->run(shortened(command));
    }
  }
  CHECK(count > (run_documents().size() > 1 ? 40 : 5));
}

TEST_CASE("exceptions of the documents' commands are of use", "[documents]") {
  std::set<const char*> used;
  for (const auto& document : all_documents())
    for (const auto& command : documents::commands_in(document))
      for (const auto& one : exceptions)
        if (std::regex_search(command, std::regex{one.pattern})) {
          used.insert(one.pattern);
          break;
        }
  for (const auto& one : exceptions) {
    INFO(one.pattern);
    CHECK(used.contains(one.pattern));
  }
}

} // namespace troupe::document_commands_test
