// SPDX-License-Identifier: BSD-3-Clause
// Studies: every combination runs once, tables have the numbers of the runs, and a
// study that was killed goes on as if nothing had happened.

#include "tests/dice.hpp"
#include "tests/experiments/started.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

namespace troupe::study_test {

namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

/// The rows of a CSV file, each by the names of its columns.
using rows = std::vector<std::map<std::string, std::string>>;

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> result(1);
  bool quoted = false;
  for (const char c : line)
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      result.emplace_back();
    else
      result.back() += c;
  return result;
}

rows rows_of(const fs::path& file) {
  std::istringstream lines{content_of(file)};
  std::string line;
  std::getline(lines, line);
  const auto head = fields_of(line);
  rows result;
  while (std::getline(lines, line)) {
    const auto fields = fields_of(line);
    REQUIRE(fields.size() == head.size());
    auto& row = result.emplace_back();
    for (std::size_t i = 0; i < head.size(); ++i)
      row[head[i]] = fields[i];
  }
  return result;
}

double number_in(const std::map<std::string, std::string>& row, const char* column) {
  return std::stod(row.at(column));
}

/// A study of tiny trainings in virtual time.
const std::string tiny = "study --clock virtual --model mlp --layers 4 --d-model 8 "
                         "--batch 8 --steps 4 --evaluate-samples 20 ";

std::string refusal(const std::string& words) {
  const temporary_folder folder;
  const auto ended = run_program_in(folder, "study " + words);
  CHECK(ended.exit_code == 2);
  CHECK_FALSE(fs::exists(folder.path() / "runs"));
  return ended.err;
}

} // namespace

TEST_CASE("a study of bubbles has the published formula in each row",
          "[programs][study]") {
  const temporary_folder folder;
  const auto ended =
    run_program_in(folder, "study simulate --schedules gpipe,chimera --cost F=1,B=1 "
                           "--vary microbatches=3,4,8 --vary stages=2,4 --report s");
  REQUIRE(ended.exit_code == 0);
  const auto runs = rows_of(folder.path() / "s/runs.csv");
  REQUIRE(runs.size() == 12);
  for (const auto& row : runs) {
    const double m = number_in(row, "microbatches"), s = number_in(row, "stages");
    CAPTURE(row.at("schedule"), m, s);
    if (row.at("schedule") == "gpipe") {
      CHECK(row.at("ending") == "finished");
      CHECK(std::abs(number_in(row, "bubble") - (s - 1) / (m + s - 1)) < 1e-12);
    } else if (m == 3) { // Chimera needs an even number of microbatches
      CHECK(row.at("ending") == "refused");
      CHECK_THAT(row.at("error"), ContainsSubstring("--microbatches"));
      CHECK(row.at("bubble").empty());
    }
  }
  CHECK_THAT(ended.out, ContainsSubstring("refused: "));
  const auto summary = rows_of(folder.path() / "s/summary.csv");
  int bubbles = 0;
  for (const auto& row : summary)
    if (row.at("measure") == "bubble") {
      ++bubbles;
      CHECK(row.at("n") == "1");
      CHECK(row.at("deviation").empty());
      CHECK(row.at("compared_with") == (row.at("schedule") == "gpipe" ? "" : "gpipe"));
    }
  CHECK(bubbles == 10);
  CHECK(fs::exists(folder.path() / "s/study.html"));
}

// zb-v has two stages on a rank: by the paper it holds as many layers' activations as
// 1F1B, in half-stages.
TEST_CASE("a study counts activations in microbatches of all layers of a rank",
          "[programs][study]") {
  const temporary_folder folder;
  const auto ended = run_program_in(
    folder, "study simulate --schedules gpipe,1f1b,zb-v,chimera --microbatches 8 "
            "--stages 4 --vary \"cost=F=1,B=2;\" --report s");
  REQUIRE(ended.exit_code == 0);
  for (const auto& row : rows_of(folder.path() / "s/runs.csv")) {
    INFO(row.at("schedule"));
    CHECK(row.at("cost") == "F=1,B=2");
    CHECK(number_in(row, "peak_microbatches")
          == (row.at("schedule") == "gpipe" ? 8 : 4));
  }
}

TEST_CASE("a study's seeds are the runs of these seeds, and pair",
          "[programs][study]") {
  const temporary_folder folder;
  REQUIRE(run_program_in(folder, tiny
                                   + "--schedules 1f1b,pipedream --stages 2 --seed 5 "
                                     "--seeds 3 --quiet --report s")
            .exit_code
          == 0);
  const auto runs = rows_of(folder.path() / "s/runs.csv");
  REQUIRE(runs.size() == 6);
  std::map<std::string, std::vector<double>> losses;
  for (const auto& row : runs) {
    const auto alone = run_program_in(
      folder, "compare" + tiny.substr(5) + "--stages 2 --schedule " + row.at("schedule")
                + " --seed " + row.at("seed") + " --quiet --json -");
    REQUIRE(alone.exit_code == 0);
    const auto told = json::parse(alone.out)["runs"][0];
    CHECK(number_in(row, "evaluation_loss_nats") == told["evaluation"]["loss"]);
    CHECK(number_in(row, "makespan_seconds") == told["makespan"]);
    losses[row.at("schedule")].push_back(number_in(row, "evaluation_loss_nats"));
  }
  CHECK(runs[0].at("seed") == "5");
  CHECK(runs[5].at("seed") == "7");
  const auto check = [](const std::vector<double>& values, double mean,
                        double deviation) {
    const double expected = (values[0] + values[1] + values[2]) / 3;
    double squares = 0;
    for (const double value : values)
      squares += (value - expected) * (value - expected) / 2;
    CHECK(std::abs(mean - expected) < 1e-12);
    CHECK(std::abs(deviation - std::sqrt(squares)) < 1e-12);
  };
  for (const auto& row : rows_of(folder.path() / "s/summary.csv")) {
    if (row.at("measure") != "evaluation_loss_nats")
      continue;
    CHECK(row.at("n") == "3");
    check(losses[row.at("schedule")], number_in(row, "mean"),
          number_in(row, "deviation"));
    if (row.at("schedule") != "pipedream")
      continue;
    std::vector<double> differences;
    for (std::size_t i = 0; i < 3; ++i)
      differences.push_back(losses["pipedream"][i] - losses["1f1b"][i]);
    check(differences, number_in(row, "difference_mean"),
          number_in(row, "difference_deviation"));
  }
}

TEST_CASE("a study that is killed goes on to the same tables", "[programs][study]") {
  const temporary_folder folder;
  const auto words = tiny
                     + "--schedules gpipe,1f1b,pipedream --vary microbatches=2,3,4 "
                       "--vary stages=1,2 --seeds 2 --quiet --report ";
  REQUIRE(run_program_in(folder, words + "whole").exit_code == 0);
  dice random{7};
  std::vector<std::string> typed;
  std::istringstream parts{words + "cut"};
  for (std::string word; parts >> word;)
    typed.push_back(word);
  int kills = 0;
  for (bool ended = false; !ended;) {
    started program{folder, "study", typed};
    const auto patience =
      std::chrono::milliseconds{random.number(50, 300 + 50 * kills)};
    const int exit_code = program.wait(patience);
    ended = exit_code == 0;
    if (!ended) {
      REQUIRE(exit_code == -1); // it still ran
      program.send(SIGKILL);
      program.wait(std::chrono::seconds{60});
      ++kills;
    }
    if (fs::exists(folder.path() / "cut/study.json"))
      typed = {"study", "--continue", "cut", "--quiet"};
    REQUIRE(kills < 1000);
  }
  CHECK(kills > 0);
  for (const char* name : {"runs.csv", "summary.csv"})
    CHECK((content_of(folder.path() / "cut" / name)
           == content_of(folder.path() / "whole" / name)));
  // Several runs at a time change nothing, and a whole study has nothing to do.
  const auto again = run_program_in(folder, "study --continue cut --jobs 2");
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.out, ContainsSubstring("kept 36 of 36 runs"));
  REQUIRE(run_program_in(folder, words + "parallel --jobs 3").exit_code == 0);
  CHECK((content_of(folder.path() / "parallel/runs.csv")
         == content_of(folder.path() / "whole/runs.csv")));
}

TEST_CASE("a damaged result of a study runs again", "[programs][study]") {
  const temporary_folder folder;
  REQUIRE(
    run_program_in(folder, "study simulate --schedules gpipe,1f1b --report s").exit_code
    == 0);
  const auto csv = content_of(folder.path() / "s/runs.csv");
  const auto results = content_of(folder.path() / "s/runs/00002.json");
  for (const auto& text :
       {std::string{}, std::string{"{"}, std::string{"[]"},
        content_of(folder.path() / "s/runs/00001.json"), results.substr(0, 100)}) {
    folder.write("s/runs/00002.json", text);
    const auto again = run_program_in(folder, "study --continue s");
    CHECK(again.exit_code == 0);
    CHECK_THAT(again.out, ContainsSubstring("kept 1 of 2 runs"));
    CHECK((content_of(folder.path() / "s/runs.csv") == csv));
    CHECK((content_of(folder.path() / "s/runs/00002.json") == results));
  }
}

TEST_CASE("a wrong study says what is allowed", "[programs][study]") {
  for (const auto& [words, sentence] : std::vector<std::pair<std::string, std::string>>{
         {"train",
          "'train' is no program that a study repeats: say compare or simulate"},
         {"--vary steps", "--vary steps: write OPTION=VALUE,VALUE"},
         {"--vary steps=", "--vary steps=: write OPTION=VALUE,VALUE"},
         {"--vary steps=1,,2", "write OPTION=VALUE,VALUE"},
         {"--vary mesh=data=2,pipe=2", "separate the values by semicolons"},
         {"--vary steps=1,1", "has a value twice: give each value once"},
         {"--vary stepps=1,2", "there is no option 'stepps' (did you mean 'steps'?)"},
         {"--vary schedule=gpipe", "name them by --schedules instead"},
         {"--vary report=a,b", "--vary report: each run has a file of its own"},
         {"--vary steps=1,2 --vary steps=3", "--vary names steps twice"},
         {"--vary seed=1,2 --seeds 2", "leave --vary seed or --seeds out"},
         {"--schedules gpipe,gpipe", "name each schedule once"},
         {"simulate --vary weights=1,2", "there is no option 'weights'"},
         {"--vary operation=a,b", "there is no option 'operation'"},
         {"--microbatches 4 --vary microbatches=2,8",
          "--microbatches and --vary both give microbatches: leave --microbatches out"},
         {"--seeds 0", "--seeds 0 is out of range: give 1 to 10000"},
         {"simulate --seeds 2", "there is no option '--seeds'"},
         {"--jobs 2", "--jobs 2 needs --clock virtual in every run"},
         {"--jobs 0", "--jobs 0 is out of range: give 1 to 1024"},
         {"--json x", "there is no option '--json'"},
         {"--seed 18446744073709551615 --seeds 2", "leaves no room for --seeds"},
         {"--continue nowhere", "--continue nowhere is no folder of a study"},
         {"--continue nowhere --steps 3", "leave --steps out"},
         {"--vary steps=1,2,3,4,5,6,7,8,9,10 --vary batch=1,2,3,4,5,6,7,8,9,10 "
          "--seeds 10000",
          "give at most 20000"}}) {
    INFO(words);
    CHECK_THAT(refusal(words), ContainsSubstring(sentence));
  }
}

TEST_CASE("a study in which nothing can run ends with the reasons",
          "[programs][study]") {
  const temporary_folder folder;
  const auto ended = run_program_in(
    folder, "study simulate --schedule chimera --vary microbatches=3,5 --report s");
  CHECK(ended.exit_code == 2);
  CHECK_THAT(ended.out, ContainsSubstring("refused: "));
  CHECK(rows_of(folder.path() / "s/runs.csv").size() == 2);
  const auto second =
    run_program_in(folder, "study simulate --schedule gpipe --report s");
  CHECK(second.exit_code == 2);
  CHECK_THAT(second.err, ContainsSubstring("--report s has a study: say --continue s"));
  folder.write("s/study.json", "{\"troupe\": \"0.0.1\", \"plan\": {}}");
  CHECK_THAT(run_program_in(folder, "study --continue s").err,
             ContainsSubstring("is a study of troupe 0.0.1"));
}

TEST_CASE("options of a study's file are options of its runs", "[programs][study]") {
  const temporary_folder folder;
  folder.write("study.toml", "vary = [\"microbatches=2,4\", "
                             "\"mesh=data=2,pipe=1;pipe=2\"]\nschedules = \"gpipe\"\n"
                             "steps = 2\nexchange = \"ring\"\n");
  const auto ended =
    run_program_in(folder, "study simulate --config study.toml --report s");
  INFO(ended.err);
  REQUIRE(ended.exit_code == 0);
  const auto runs = rows_of(folder.path() / "s/runs.csv");
  REQUIRE(runs.size() == 4);
  CHECK(runs[0].at("mesh") == "data=2,pipe=1");
  CHECK(runs[1].at("mesh") == "pipe=2");
  CHECK(runs[0].at("steps") == "2");
  CHECK(runs[0].at("gradient_bytes") != "0"); // of two replicas
  CHECK(runs[1].at("gradient_bytes") == "0");
}

TEST_CASE("the folder of a study starts nothing but runs of a study",
          "[programs][study]") {
  const temporary_folder folder;
  REQUIRE(
    run_program_in(folder, "study simulate --schedules gpipe,1f1b --report s").exit_code
    == 0);
  const auto facts = json::parse(content_of(folder.path() / "s/study.json"));
  const std::vector<std::pair<std::string, std::function<void(json&)>>> changes{
    {"a shell",
     [](json& p) {
       p["runs"][0]["words"] = {"/bin/sh", "-c", "touch ran"};
     }},
    {"a program", [](json& p) { p["program"] = "train"; }},
    {"a path", [](json& p) { p["runs"][0]["words"][0] = "../simulate"; }},
    {"a file", [](json& p) { p["runs"][1]["words"].push_back("--json=ran"); }},
    {"a report", [](json& p) { p["runs"][1]["words"].push_back("--report=ran"); }},
    {"no run", [](json& p) { p["runs"] = json::array(); }},
    {"no word", [](json& p) { p["runs"][0]["words"] = json::array(); }},
    {"a value", [](json& p) { p["runs"][0]["values"] = {"4"}; }},
    {"a list", [](json& p) { p = json::array(); }}};
  for (const auto& [name, change] : changes) {
    INFO(name);
    auto changed = facts;
    change(changed["plan"]);
    folder.write("s/study.json", changed.dump());
    fs::remove(folder.path() / "s/runs/00001.json");
    const auto ended = run_program_in(folder, "study --continue s");
    CHECK(ended.exit_code == 2);
    CHECK_THAT(ended.err, ContainsSubstring("--continue s has a damaged study.json"));
    CHECK_FALSE(fs::exists(folder.path() / "ran"));
  }
  folder.write("s/study.json", facts.dump());
  CHECK(run_program_in(folder, "study --continue s").exit_code == 0);
  for (const char* file : {"s/runs/00001.json", "s/study.json"}) {
    const auto kept = content_of(folder.path() / file);
    folder.write(file, "{\"deep\":" + std::string(300'000, '[')
                         + std::string(300'000, ']') + "," + kept.substr(1));
    const bool is_run = std::string_view{file} != "s/study.json";
    CHECK(run_program_in(folder, "study --continue s").exit_code == (is_run ? 0 : 2));
    folder.write(file, kept);
  }
  fs::create_directory(folder.path() / "other");
  CHECK_THAT(run_shell_in(folder, "cd other && study --continue ../s").err,
             ContainsSubstring("--continue ../s was begun in "));
  fs::create_symlink("../../victim", folder.path() / "s/runs/00003.json");
  CHECK_THAT(run_program_in(folder, "study --continue s").err,
             ContainsSubstring("a study writes none: remove the link"));
}

TEST_CASE("a study that cannot keep a result says so", "[programs][study]") {
  const temporary_folder folder;
  const std::string words = "study simulate --schedules gpipe,1f1b,naive --report s ";
  REQUIRE(run_program_in(folder, words).exit_code == 0);
  fs::remove(folder.path() / "s/runs/00001.json");
  fs::create_directory(folder.path() / "s/runs/00001.json");
  fs::remove(folder.path() / "s/runs/00002.json");
  for (const char* jobs : {"1", "3"}) {
    const auto ended =
      run_program_in(folder, std::string{"study --continue s --jobs "} + jobs);
    CHECK(ended.exit_code == 1);
    CHECK_THAT(ended.err, ContainsSubstring("00001.json"));
  }
  // Files that no study has written stay.
  fs::create_directory(folder.path() / "mine");
  folder.write("mine/runs.csv", "mine");
  CHECK_THAT(
    run_program_in(folder, "study simulate --schedule gpipe --report mine").err,
    ContainsSubstring("--report mine has a file runs.csv that is of no study"));
  CHECK(content_of(folder.path() / "mine/runs.csv") == "mine");
}

TEST_CASE("schedules of a study are compared at one time", "[programs][study]") {
  const temporary_folder folder;
  auto longer = tiny;
  longer.replace(longer.find("--steps 4"), 9, "--steps 24");
  longer += "--schedules naive,pipedream --stages 2 --target-loss 2.35 --quiet ";
  REQUIRE(run_program_in(folder, longer + "--seeds 2 --report s").exit_code == 0);
  const auto together =
    run_program_in(folder, "compare" + longer.substr(5) + "--seed 2 --json -");
  REQUIRE(together.exit_code == 0);
  const auto told = json::parse(together.out)["runs"];
  std::size_t compared = 0;
  for (const auto& row : rows_of(folder.path() / "s/runs.csv")) {
    if (row.at("seed") != "2")
      continue;
    const auto& run = told[row.at("schedule") == "naive" ? 0 : 1];
    CHECK(number_in(row, "loss_after_shortest_nats") == run["after_shortest"]["loss"]);
    CHECK(
      row.at("target_samples")
      == (run["target"]["samples"].is_null() ? "" : run["target"]["samples"].dump()));
    ++compared;
  }
  CHECK(compared == 2);
}

} // namespace troupe::study_test
