// SPDX-License-Identifier: BSD-3-Clause
// Tests the programs from a user's side: output, written files and exit codes.

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

using Catch::CaseSensitive;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using nlohmann::json;

std::string program_path(const std::string& name) {
  return TROUPE_PROGRAMS "/" + name;
}

namespace {

const std::string tiny = " --d-model 8 --heads 2 --seq 4 --vocab 7 ";

bool one_line(const std::string& text) {
  return std::ranges::count(text, '\n') == 1 && text.ends_with('\n');
}

} // namespace

TEST_CASE("every program helps and knows its version", "[programs]") {
  temporary_folder folder;
  const std::string name = GENERATE(
    "bench", "certificates", "checkpoint", "collectives", "compare", "evaluate",
    "generate", "local", "memory", "node", "plan", "simulate", "train", "verify");
  const auto help = run_program_in(folder, name + " --help");
  CHECK(help.exit_code == 0);
  CHECK_THAT(help.out, ContainsSubstring("usage", CaseSensitive::No));
  CHECK(help.err.empty());
  const auto version = run_program_in(folder, name + " --version");
  CHECK(version.exit_code == 0);
  CHECK_THAT(version.out, StartsWith("troupe "));
  for (const auto* const what : {"processor ", "compiler ", "CAF ", "found ", "GPUs "})
    CHECK_THAT(version.out, ContainsSubstring(std::string{"\n"} + what));
  for (const auto* const variable :
       {"@CAF_", "@CMAKE_", "@PROJECT_", "@TROUPE_", "@found@", "@sanitized@"})
    CHECK_THAT(version.out,
               !ContainsSubstring(variable)); // a processor's name may have @
}

TEST_CASE("help fits on a screen, and no line of it or of all help is too long",
          "[programs]") {
  temporary_folder folder;
  for (const std::string name :
       {"bench", "certificates", "checkpoint", "collectives", "compare", "evaluate",
        "generate", "local", "memory", "node", "plan", "simulate", "train", "verify"}) {
    const auto most_used = run_program_in(folder, name + " --help").out,
               all = run_program_in(folder, name + " --help-all").out;
    INFO(most_used << all);
    CHECK(std::ranges::count(most_used, '\n') <= 40);
    CHECK(std::ranges::count(all, '\n') >= std::ranges::count(most_used, '\n'));
    for (std::size_t begin = 0; begin < all.size();) {
      const auto end = all.find('\n', begin);
      CHECK(end - begin <= 100);
      begin = end + 1;
    }
    for (std::size_t begin = 0; begin < most_used.size();) {
      const auto end = most_used.find('\n', begin);
      CHECK(end - begin <= 100);
      begin = end + 1;
    }
    for (const auto* const option : {"--help-all", "--version"})
      CHECK_THAT(all, ContainsSubstring(option));
  }
  const auto cost = run_program_in(folder, "train --help-all").out;
  for (const auto* const row :
       {"\n        I, W       input gradient", "\n        latency    milliseconds",
        "\n  zb-auto ", "\nSchedules:\n", "\nExchanges:\n  naive "})
    CHECK_THAT(cost, ContainsSubstring(row));
}

TEST_CASE("the installed launcher lists programs and shows their help", "[programs]") {
  temporary_folder folder;
  namespace fs = std::filesystem;
  const auto build = fs::path{program_path("train")}.parent_path();
  fs::create_directories(folder.path() / "bin");
  fs::create_directories(folder.path() / "libexec");
  fs::copy_file(build.parent_path() / "troupe.launcher", folder.path() / "bin/troupe");
  fs::create_symlink(build, folder.path() / "libexec/troupe");
  const auto run = [&](const std::string& typed) {
    return run_shell_in(folder, "sh bin/troupe " + typed);
  };
  const auto list = run("");
  CHECK(list.exit_code == 0);
  for (const auto* const line :
       {"\n  certificates  makes ", "\n  train         trains one model under one "
                                    "schedule; evaluates, saves, resumes\n"})
    CHECK_THAT(list.out, ContainsSubstring(line));
  CHECK(run("help").out == list.out);
  CHECK(run("help train").out == run_program_in(folder, "train --help").out);
  CHECK(run("help nothing").exit_code == 2);
  CHECK(run("../train").exit_code == 2);
}

TEST_CASE("a mistake gets one sentence, exit code 2, and no file", "[programs]") {
  temporary_folder folder;
  folder.write("broken.toml", "steps = [3\n");
  folder.write("unknown.toml", "stepz = 3\n");
  folder.write("broken.safetensors", "not a header");
  folder.write("options.toml", "steps = 3\n");
  REQUIRE(mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  const std::string typed = GENERATE(
    "train --schedule zigzag", "train --stages 99", "train --steps 1.5",
    "train --steps three", "train --nonsense", "train nonsense",
    "train --config missing.toml", "train --config broken.toml",
    "train --config unknown.toml", "train --init broken.safetensors",
    "train --save /nowhere/w.safetensors", "train --json /nowhere/r.json",
    "train --report /proc/nowhere", "compare --schedules gpipe,zigzag",
    "compare --schedules chimera --stages 3", "simulate --cost F=fast",
    "simulate --microbatches 99999999999",
    "simulate --stages 1000000000 --microbatches 1", "simulate --schedule 1f1b:lr=1",
    "collectives --ranks 4096", "collectives --ranks 2,x", "collectives --bytes 5",
    "collectives --operation allreduce", "collectives --algorithm zigzag",
    "collectives --operation send --algorithm ring", "collectives --bandwidth -1",
    "collectives --json /nowhere/r.json", "memory --schedules gpipe,1f1b",
    "memory --mesh tensor=3", "simulate --sequence-parallel",
    "memory --json /nowhere/r.json", "compare --mesh data=2 --exchange zero4",
    "verify --mesh data=2 --schedule 1f1b --exchange hogwild",
    "compare --mesh data=2 --exchange server:staleness=x",
    "verify --schedule 2bw --microbatches 2", "verify --all --schedule foo",
    "verify --all --model lenet", "verify --all --steps 3", "train --save x --json ./x",
    "train --report r --save r/results.json",
    "simulate --report r --json r/results.json",
    "train --save model.safetensors --json config.json",
    "simulate --machines ranks=2,links=options.toml --json options.toml",
    "simulate --stages 4 --machines ranks=4,latency=50",
    "compare --report r --save r/trace.json",
    "train --save x --config options.toml --json options.toml",
    "train --data text:options.toml --vocab 256 --save options.toml",
    "train --data options.toml", "node --nonsense", "node stay", "checkpoint", "plan",
    "plan --planner alpa", "plan --case options.toml --planner alpa",
    "plan --case options.toml --planner nobody", "certificates --nonsense",
    "certificates here", "certificates options.toml a", "train --json /dev/null",
    "train --save /dev/null", "train --report /dev/null", "train --save .",
    "simulate --report options.toml", "train --config pipe", "simulate --quiet --print",
    "train --steps 010", "train --model mlp --layers 1000000");
  const auto wrong = run_program_in(folder, typed);
  INFO(typed << "\n" << wrong.err);
  CHECK(wrong.exit_code == 2);
  CHECK(one_line(wrong.err));
  CHECK_THAT(wrong.err, StartsWith(typed.substr(0, typed.find(' ')) + ": "));
  CHECK(wrong.out.empty());
  CHECK_FALSE(std::filesystem::exists(folder.path() / "runs"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "r"));
  CHECK(content_of(folder.path() / "options.toml") == "steps = 3\n");
}

TEST_CASE("compare reports every schedule", "[programs]") {
  temporary_folder folder;
  const auto ran =
    run_program_in(folder, "compare --steps 3 --report r --batch 8" + tiny);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  const auto results = json::parse(content_of(folder.path() / "r/results.json"));
  std::vector<std::string> names;
  for (const auto& run : results["runs"]) {
    names.push_back(run["schedule"]);
    CHECK_THAT(ran.out, ContainsSubstring("\n" + names.back()));
    const auto trace = "r/trace-" + names.back() + ".json";
    CHECK_FALSE(json::parse(content_of(folder.path() / trace))["traceEvents"].empty());
    CHECK(run["evaluation"]["loss"] > 0);
  }
  CHECK(names
        == std::vector<std::string>{"naive", "gpipe", "1f1b", "zb-h1", "zb-h2",
                                    "zb-auto", "chimera", "dualpipe", "pipedream",
                                    "2bw", "ampnet"});
  // The flush schedules train the same network.
  for (const int other : {1, 2})
    CHECK(results["runs"][0]["loss"] == results["runs"][other]["loss"]);
}

TEST_CASE("a measured split says by what it was cut, and that cuts alike",
          "[programs]") {
  temporary_folder folder;
  const std::string train = "train --schedule 1f1b --steps 2 --stages 2 --layers 4 "
                            "--d-model 8 --heads 2 --seq 4 --vocab 11 --save ";
  const auto measured = run_program_in(folder, train + "a --split measured");
  INFO(measured.err);
  CHECK(measured.exit_code == 0);
  const std::string says = "train: measured --split costs=";
  const auto begin = measured.err.find(says);
  REQUIRE(begin != std::string::npos);
  auto costs = measured.err.substr(begin + says.size());
  costs = costs.substr(0, costs.find('\n'));
  CHECK(std::ranges::count(costs, '/') == 3);
  const auto typed = run_program_in(folder, train + "b --split costs=" + costs);
  CHECK(typed.exit_code == 0);
  CHECK(content_of(folder.path() / "a") == content_of(folder.path() / "b"));
}

TEST_CASE("zb-auto may measure what it goes by, and says so", "[programs]") {
  temporary_folder folder;
  const std::string train = "train --steps 2 --stages 2 --layers 4 --d-model 8 "
                            "--heads 2 --seq 4 --vocab 11 --report ";
  const auto measured = run_program_in(
    folder, train + "a --schedule zb-auto:measured=on,most_held=3,lr=0.01");
  INFO(measured.err);
  CHECK(measured.exit_code == 0);
  const std::string says = "train: measured --schedule zb-auto:f=";
  const auto begin = measured.err.find(says);
  REQUIRE(begin != std::string::npos);
  auto text =
    measured.err.substr(begin + says.size() - std::string{"zb-auto:f="}.size());
  text = text.substr(0, text.find('\n'));
  CHECK_THAT(text, ContainsSubstring(",lr=0.01,most_held=3"));
  const auto typed = run_program_in(folder, train + "b --schedule " + text);
  INFO(typed.err);
  CHECK(typed.exit_code == 0);
  const auto parameters_in = [&](const char* report) {
    const auto all = json::parse(content_of(folder.path() / report / "results.json"));
    return all["runs"][0]["parameters"];
  };
  CHECK(parameters_in("a") == parameters_in("b"));
  CHECK(run_program_in(folder, "simulate --schedule zb-auto:measured=on").exit_code
        == 2);
}

TEST_CASE(
  "a verdict on the first steps stands in the results, and nowhere if not asked for",
  "[programs]") {
  const temporary_folder folder;
  const auto typed = "compare --schedules 1f1b,ampnet --steps 3 --report r" + tiny;
  const auto ran = run_program_in(folder, typed + " --verify 2");
  CHECK(ran.exit_code == 0);
  CHECK_THAT(
    ran.out,
    ContainsSubstring("1f1b: plain loop, replay, formula, memory hold over 2 steps\n")
      && ContainsSubstring("ampnet: replay, formula, memory hold over 2 steps\n"));
  const auto results = json::parse(content_of(folder.path() / "r" / "results.json"));
  for (const auto& run : results["runs"]) {
    CHECK(run["verified"]["steps"] == 2);
    CHECK(run["verified"]["holds"] == true);
    CHECK(run["verified"]["failure"].is_null());
    for (const auto& one : run["verified"]["proofs"])
      CHECK(one["verdict"] == "holds");
  }
  CHECK(results["runs"][0]["verified"]["proofs"].size() == 4);
  CHECK_THAT(
    content_of(folder.path() / "r" / "report.html"),
    ContainsSubstring("plain loop, replay, formula, memory hold over 2 steps"));
  REQUIRE(run_program_in(folder, typed).exit_code == 0);
  const auto without = json::parse(content_of(folder.path() / "r" / "results.json"));
  CHECK(without["runs"][0]["verified"].is_null());
}

TEST_CASE("a run proves its beginning beside checkpoints, and evaluates by itself",
          "[programs]") {
  const temporary_folder folder;
  const auto ran = run_program_in(
    folder, "train --steps 3 --verify 2 --checkpoint c --checkpoint-every 1 "
            "--evaluate-every 1 --json r.json"
              + tiny);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  const auto run = json::parse(content_of(folder.path() / "r.json"))["runs"][0];
  CHECK(run["verified"]["holds"] == true);
  REQUIRE(run["evaluations"].size() == 3);
  for (int i = 0; i < 3; ++i)
    CHECK(run["evaluations"][i]["samples"] == run["loss_samples"][i]);
}

TEST_CASE("a run that cannot be proved is refused or told of, and then trains",
          "[programs]") {
  const temporary_folder folder;
  const auto typed = "train --steps 3 --json r.json" + tiny;
  const auto failed = run_program_in(
    folder, typed + " --verify 3 --optimizer sgd --lr 1e30"); // the second loss is NaN
  CHECK(failed.exit_code == 1);
  CHECK_THAT(failed.err, ContainsSubstring("1f1b: not proved over 3 steps: "));
  const auto run = json::parse(content_of(folder.path() / "r.json"))["runs"][0];
  CHECK(run["verified"]["holds"] == false);
  CHECK(run["ending"] == "failed");
  for (const auto& [more, why] : std::vector<std::pair<std::string, std::string>>{
         {" --verify -1", "--verify -1: the value is at least 0"},
         {" --verify 1 --nodes localhost:1 --insecure",
          "proves only runs without nodes"},
         {" --verify 1 --resume c", "from its first step on"},
         {" --verify 1 --mesh data=2,pipe=2 --exchange hogwild", "--clock virtual"}}) {
    const auto refused = run_program_in(folder, typed + more);
    INFO(refused.err);
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, ContainsSubstring(why));
    CHECK(std::count(refused.err.begin(), refused.err.end(), '\n') == 1);
  }
}

TEST_CASE("compare without a report folder makes one of its own", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(folder, "compare --schedules gpipe --steps 1" + tiny);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("results.json"));
  CHECK(std::filesystem::exists(folder.path() / "runs"));
}

TEST_CASE("the same command twice gives the same bytes in virtual time", "[programs]") {
  temporary_folder folder;
  const std::string typed =
    GENERATE("simulate --stages 8 --microbatches 16 --report r",
             "train --clock virtual --schedule ampnet:min_update_frequency=2 --steps 4 "
             "--evaluate-every 2 --save r/w.safetensors --report r");
  std::filesystem::create_directory(folder.path() / "r");
  std::vector<std::string> all;
  for (int i = 0; i < 2; ++i) {
    const auto ran =
      run_program_in(folder, typed + (typed.starts_with("train") ? tiny : ""));
    INFO(ran.err);
    CHECK(ran.exit_code == 0);
    all.push_back(ran.out);
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator{folder.path() / "r"})
      files.push_back(file);
    std::ranges::sort(files);
    CHECK(files.size() > 1);
    for (const auto& file : files)
      all.back() += content_of(file);
  }
  CHECK((all[0] == all[1]));
}

TEST_CASE("standard output is for the results alone under --json -", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(folder, "simulate --schedule gpipe --print --json -");
  CHECK(ran.exit_code == 0);
  CHECK(json::parse(ran.out)["runs"].size() == 1);
  CHECK_THAT(ran.err, ContainsSubstring("rank 3"));
  const auto compared = run_program_in(
    folder, "compare --quiet --json - --schedules gpipe,1f1b --steps 2" + tiny);
  CHECK(json::parse(compared.out)["runs"].size() == 2);
  CHECK(compared.err.empty());
  CHECK_FALSE(std::filesystem::exists(folder.path() / "runs"));
  const auto quiet = run_program_in(folder, "train --quiet --json - --steps 2" + tiny);
  CHECK(quiet.exit_code == 0);
  CHECK(json::parse(quiet.out)["runs"][0]["loss"].size() == 2);
  CHECK(quiet.err.empty());
}

TEST_CASE("a file gives any option, and the command line goes before it",
          "[programs]") {
  temporary_folder folder;
  folder.write("options.toml",
               "steps = 3\nschedule = \"gpipe\"\nd-model = 8\nheads = 2\n"
               "seq = 4\nvocab = 7\njson = \"r.json\"\n");
  const auto ran = run_program_in(folder, "train --config options.toml --steps 2");
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  CHECK(results["runs"][0]["schedule"] == "gpipe");
  CHECK(results["runs"][0]["steps"] == 2);
}

TEST_CASE("a FIFO in a file's place is refused, and nothing waits for it",
          "[programs]") {
  temporary_folder folder;
  std::filesystem::create_directory(folder.path() / "c");
  for (const auto* const name : {"pipe", "c/authority.crt", "c/authority.key"})
    REQUIRE(mkfifo((folder.path() / name).c_str(), 0600) == 0);
  const std::string typed =
    GENERATE("train --init pipe", "train --data text:pipe", "train --data tokens:pipe",
             "train --save pipe", "train --json pipe", "evaluate --weights pipe",
             "certificates c localhost");
  const auto wrong = run_program_in(folder, typed);
  CHECK(wrong.exit_code == 2);
  CHECK(one_line(wrong.err));
}

#ifndef TROUPE_SANITIZED // sanitizers take terabytes of addresses
TEST_CASE("a program without memory or threads ends with a sentence", "[programs]") {
  temporary_folder folder;
  // With little memory the program is loaded, but libraries lack memory before main.
  for (int kilobytes = 26'000; kilobytes < 120'000; kilobytes += 8'192) {
    const auto result =
      run_program_in(folder, "train --steps 2 --threads 4 --stages 2 --quiet" + tiny,
                     "ulimit -v " + std::to_string(kilobytes));
    INFO(kilobytes << " kB: " << result.err);
    if (result.exit_code == 0
        || result.exit_code == 127) // enough memory, or no program loaded
      continue;
    CHECK((result.exit_code == 1 || result.exit_code == 2)); // 2: the run is refused
    CHECK(one_line(result.err));
    const auto says = [&](const char* what) {
      return result.err.find(what) != std::string::npos;
    };
    CHECK((says("out of memory") || says("cannot start ") || says("of memory (")));
  }
}
#endif
