// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/command_line.hpp"

#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <iostream>
#include <sstream>

namespace troupe::command_line_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

const program_info training{
  .name = "train", .description = "", .defaults = {.schedules = {.names = {"1f1b"}}}};

struct answer {
  std::optional<options> read;
  int exit_code = 0;
  std::string sentence; ///< Text on standard error.
};

answer read(const std::vector<std::string>& words) {
  std::vector<const char*> arguments{"train"};
  for (const auto& word : words)
    arguments.push_back(word.c_str());
  std::stringstream said;
  auto* const before = std::cerr.rdbuf(said.rdbuf());
  const auto result =
    read_command_line(training, static_cast<int>(arguments.size()), arguments.data());
  std::cerr.rdbuf(before);
  if (result)
    return {*result, 0, said.str()};
  return {{}, result.error(), said.str()};
}

void check_refused(const std::vector<std::string>& words, const std::string& sentence) {
  const auto got = read(words);
  INFO(words.back());
  CHECK(got.exit_code == 2);
  CHECK_THAT(got.sentence, StartsWith("train: ") && ContainsSubstring(sentence));
  CHECK(std::ranges::count(got.sentence, '\n') == 1);
  CHECK(std::ranges::none_of(got.sentence, [](char c) { return c == '\x1b'; }));
}

std::vector<std::string> names_of(const options& o) {
  std::vector<std::string> result;
  for (const auto& one : o.schedules.chosen)
    result.push_back(one.text);
  return result;
}

} // namespace

TEST_CASE("numbers on the command line are plain decimal", "[command_line]") {
  for (const char* text : {"010", "0x10", "", " 3", "+3", "{}", "1e2", "2147483648"})
    check_refused({"--steps", text}, "--steps: '" + std::string{text}
                                       + "' is not a whole number in plain decimal");
  for (const char* text : {"", "nan", "inf", "0x1p3", "1e999", "one"})
    check_refused({"--lr", text},
                  "--lr: '" + std::string{text} + "' is not a number in plain decimal");
  check_refused({"--seed", "-1"}, "from 0 to 18446744073709551615");
  check_refused({"--evaluate-samples", "9223372036854775808"},
                "of at most 9223372036854775807");
  const auto got = read({"--steps", "10", "--lr", "1e-2", "--seed",
                         "18446744073709551615", "--layers", "3"});
  REQUIRE(got.read.has_value());
  CHECK(got.read->schedules.steps == 10);
  CHECK(got.read->schedules.chosen.front().optimizer.rate == 0.01);
  CHECK(got.read->data.seed == 18446744073709551615ULL);
  CHECK(got.read->model.layers == 3);
  check_refused({"--threads", "-1"}, "--threads -1: give 1 to 1,024 threads");
}

TEST_CASE("texts of options are neither empty nor unprintable", "[command_line]") {
  for (const char* name : {"--save", "--mesh", "--data", "--config", "--schedule"})
    check_refused({name, ""}, "the value is empty");
  check_refused({"--save", "a\nb"}, "a control character");
  check_refused({"--schedule", "1f1b\x1b[31m"}, "a control character");
  CHECK(read({"--save", "a b.safetensors"}).read->output.save == "a b.safetensors");
}

TEST_CASE("an option is given once", "[command_line]") {
  check_refused({"--steps", "3", "--steps", "4"},
                "--steps is given several times, and takes one value");
  check_refused({"--quiet", "--quiet"},
                "--quiet is given several times, and takes one value");
  check_refused({"--stages", "2", "--mesh", "pipe=2"}, "leave --stages or pipe= out");
  const auto lists = read({"--schedule", "gpipe", "--schedules", "1f1b"});
  REQUIRE(lists.read.has_value());
  CHECK(names_of(*lists.read) == std::vector<std::string>{"gpipe", "1f1b"});
}

TEST_CASE("what is no option is named", "[command_line]") {
  check_refused({"--nonsense"}, "there is no option '--nonsense'");
  check_refused({"steps", "3"}, "'steps' is no option (did you mean '--steps'?)");
  check_refused({"some", "words"},
                "'some' is no option: type -- before the name of an option");
  check_refused({"\x1b[31mred"}, "'?[31mred' is no option: type -- before");
  check_refused({"--steps"}, "--steps needs a value");
  check_refused({"--save", "--quiet"}, "--save needs a value: --quiet is an option");
  check_refused({"--save", "--steps", "2"},
                "--save needs a value: --steps is an option");
  check_refused({"--save=", "--steps=2"}, "--save needs a value: --steps is an option");
  CHECK(read({"--save", "--w"}).read->output.save == "--w");
  check_refused({"--quiet=3"}, "--quiet: '3' is neither true nor false");
}

TEST_CASE("options without effect are refused where they are read", "[command_line]") {
  check_refused({"--momentum", "0.9"}, "--momentum applies only to sgd");
}

TEST_CASE("a file gives options line by line", "[command_line]") {
  const temporary_folder folder;
  const auto file = folder
                      .write("o.toml", "\n# all of it\nsteps = 3 # few\r\n"
                                       "schedules = [ \"gpipe\", # a list\n"
                                       "  'ampnet:max_active_keys=8,lr=0.5' ]\n"
                                       "save = \"a#\\\"b.safetensors\"\n"
                                       "quiet = true\nlr=1e-2\nclock = \"virtual\"")
                      .string();
  const auto o = read({"--config", file, "--lr", "0.5"}).read;
  REQUIRE(o.has_value());
  CHECK(o->schedules.steps == 3);
  CHECK(names_of(*o)
        == std::vector<std::string>{"gpipe", "ampnet:max_active_keys=8,lr=0.5"});
  CHECK(o->output.save == "a#\"b.safetensors");
  CHECK(o->output.quiet);
  CHECK(o->optimizer.rate == 0.5); // the command line takes precedence
  CHECK(o->run.clock == clock_kind::virtual_time);
  CHECK(o->output.config == file);
}

TEST_CASE("an option that does not exist is answered by the nearest that does",
          "[command_line]") {
  check_refused({"--bacth", "3"},
                "there is no option '--bacth' (did you mean '--batch'?); see train");
  check_refused({"--micro-batches=3"}, "(did you mean '--microbatches'?)");
  check_refused({"--learning-rate-of-all"}, "'--learning-rate-of-all'; see train");
  check_refused({"steps"}, "'steps' is no option (did you mean '--steps'?): type --");
  check_refused({"--stages"}, "--stages needs a value");
}

TEST_CASE("a number that is too small is named with its option", "[command_line]") {
  check_refused({"--steps", "0"}, "train: --steps 0: a run has at least 1 step\n");
  check_refused({"--microbatches", "0"},
                "train: --microbatches 0: a batch has at least 1 microbatch\n");
  check_refused({"--stages", "-1"},
                "train: --stages -1: a pipeline has at least 1 rank\n");
}

TEST_CASE("a file of options may begin with a byte order mark", "[command_line]") {
  const temporary_folder folder;
  const auto file = folder.write("o.toml", "\xef\xbb\xbfsteps = 3\n").string();
  const auto o = read({"--config", file}).read;
  REQUIRE(o.has_value());
  CHECK(o->schedules.steps == 3);
  folder.write("o.toml", "\xef\xbb\xbf\n[train]\n");
  check_refused({"--config", file},
                "--config: line 2, column 1: a file of options has no sections");
}

TEST_CASE("a mistake in a file is named with its line", "[command_line]") {
  const temporary_folder folder;
  const auto refused = [&](const std::string& content, const std::string& sentence) {
    const auto file = folder.write("o.toml", content).string();
    check_refused({"--config", file}, "--config: " + sentence);
  };
  refused("steps = 1\n[train]\nlr = 1\n",
          "line 2, column 1: a file of options has no sections");
  refused("steps = 1\n[train]\nlr = 1\n[train]\n",
          "line 4, column 1: a file of options has no sections");
  refused("mesh.data = 2\n", "line 1, column 1: a file of options has no sections");
  refused("mesh = {data = 2}\n", "line 1, column 8: a file of options has no sections");
  refused("\nstepz = 3\n",
          "line 2, column 1: there is no option 'stepz' (did you mean 'steps'?)");
  refused("config = \"x\"\n", "line 1, column 1: 'config' is not an option of a file");
  refused("help = true\n", "line 1, column 1: 'help' is not an option of a file");
  refused("steps = 1\nlr = 1\nsteps = 2\n",
          "line 3, column 9: 'steps' is given a second time");
  refused("schedule = \"gpipe\"\nschedules = \"1f1b\"\n",
          "line 2, column 1: 'schedules' is given a second time");
  refused("steps\n", "line 1, column 6: a line needs an option and a value");
  refused("= 3\n", "line 1, column 1: a line begins with an option");
  for (const char* value :
       {"", "virtual", "text:my file", "1f1b", "010", "99999999999999999999"})
    refused(std::string{"data ="} + value + "\n", "line 1, column ");
  refused("steps =\n", "line 1, column 8: the value is wrong: write a number");
  refused("clock = virtual\n",
          "line 1, column 9: the value is wrong: write a number such as 7, 0.5 or 1.0, "
          "true, false or a text in quotes");
  refused(
    "data = text:my file\n",
    "line 1, column 9: the value is wrong: write a number such as 7, 0.5 or 1.0, true, "
    "false or a text");
  refused("seed = 18446744073709551615\n",
          "line 1, column 28: the number has more than 63 bits: write the "
          "number in quotes");
  refused("steps = 4 # d\xe9j\xe0\n",
          "line 1, column 13: the file is not UTF-8: save the file as UTF-8");
  refused("data = \"a\" b\n", "line 1, column 12: more text follows a value");
  refused("betas = 0.9,0.999\n", "line 1, column 12: more text follows a value: put a "
                                 "text with blanks or commas in quotes");
  refused("data = \"a\nsteps = 3\n", "line 1, column 10: a text in quotes has no end");
  refused("data = \"\\q\"\n", "line 1, column 10: the text in quotes is wrong");
  refused("schedules = [\"a\",\n\"b\"\nsteps = 3\n",
          "line 3, column 1: the list has no end");
  refused("schedules = [[\"a\"]]\n",
          "line 1, column 14: a list has only numbers and texts in quotes");
  refused("lr = 1\nmesh = []\n", "line 2, column 1: 'mesh' has an empty list");
  refused("steps = []\n", "line 1, column 1: 'steps' has an empty list");
  refused("quiet = [true, false]\n", "line 1, column 1: 'quiet' has a list");
  refused(std::string{"\x00\x01", 2}, "the file is not a text");
  const auto file = folder.write("o.toml", "steps = 0x10\n").string();
  check_refused({"--config", file}, "'0x10' is not a whole number in plain decimal");
  folder.write("o.toml", "schedules = [\"0x3\", 'h\xc3\xa9', 0x3]\n");
  check_refused({"--config", file}, "0x3 is named twice in --schedules");
}

TEST_CASE("a file of options is a file", "[command_line]") {
  const temporary_folder folder;
  const auto in = [&](const char* name) { return (folder.path() / name).string(); };
  REQUIRE(mkfifo(in("pipe").c_str(), 0600) == 0);
  check_refused({"--config", in("pipe")}, "is not a file");
  check_refused({"--config", folder.path().string()}, "is not a file");
  check_refused({"--config", in("missing")}, "there is no file");
}

} // namespace troupe::command_line_test
