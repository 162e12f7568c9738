// SPDX-License-Identifier: BSD-3-Clause
// Tests `bench --beside pytorch`. A script takes the place of a Python with PyTorch.
// The script's answers are known, so rates and ratios are known.

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace troupe::beside_pytorch_test {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

const std::string tiny =
  " --layers 4 --d-model 8 --heads 2 --seq 4 --vocab 7 --batch 16 "
  "--microbatches 8 --threads 2 ";
constexpr double tokens_of_a_step = 16 * 4;

/// Number of parameters: V C + T C + L (12 C C + 13 C) + 2 C + C V.
constexpr int parameters = 7 * 8 + 4 * 8 + 4 * (12 * 64 + 13 * 8) + 2 * 8 + 8 * 7;

/// A script that reports rounds of 1, 2, 4, 8 and 16 seconds a step, as Python would.
const std::string answers = R"(#!/bin/sh
[ "$1" != -c ] || exit $((1 - HAS_TORCH))
shift 2
echo "$*" >>log
echo 'a warning on standard error' >&2
said() { echo "{\"torch\": \"9.9\", \"blas\": \"none\", \"parameters\": $1}"; }
case " $* " in
  *' --row ddp '*) said 1 ;;
  *' --row 1f1b '*) echo '{"failed": "PyTorch 1.13 has no Schedule1F1B"}'; exit ;;
  *' --row interleaved '*)
    said PARAMETERS
    read -r round
    echo 'Segmentation fault' >&2
    exit 139 ;;
  *) said PARAMETERS ;;
esac
seconds=1
while read -r round; do
  echo "{\"seconds\": $seconds}"
  seconds=$((2 * seconds))
done
)";

struct python_stand_in {
  explicit python_stand_in(bool has_torch = true) {
    auto text = answers;
    const auto put = [&text](const std::string& word, const std::string& value) {
      for (auto at = text.find(word); at != text.npos; at = text.find(word))
        text.replace(at, word.size(), value);
    };
    put("HAS_TORCH", has_torch ? "1" : "0");
    put("PARAMETERS", std::to_string(parameters));
    folder.write("python", text);
    std::filesystem::permissions(folder.path() / "python",
                                 std::filesystem::perms::owner_all);
  }

  ending_of_program bench(const std::string& typed) const {
    return run_program_in(folder, "bench" + typed, "export PYTHON=./python");
  }

  temporary_folder folder;
};

std::vector<double> sorted_ratios(const json& row) {
  std::vector<double> result;
  for (std::size_t i = 0; i < row["tokens_per_second"].size(); ++i)
    result.push_back(row["tokens_per_second"][i].get<double>()
                     / row["tokens_per_second_of_pytorch"][i].get<double>());
  std::ranges::sort(result);
  return result;
}

} // namespace

TEST_CASE("each row of PyTorch's has a ratio of five rounds, or why it has none",
          "[programs][pytorch]") {
  const python_stand_in python;
  const auto ran = python.bench(" --beside pytorch --json r.json" + tiny);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  const auto results = json::parse(content_of(python.folder.path() / "r.json"));
  const auto& beside = results["beside"];
  CHECK(beside["pytorch"]["torch"] == "9.9");
  CHECK(beside["threads"] == 2);
  CHECK(!beside["processor"].get<std::string>().empty());
  REQUIRE(beside["rows"].size() == 5);
  const auto row_of = [&](const std::string& name) {
    return *std::ranges::find_if(beside["rows"],
                                 [&](const json& row) { return row["row"] == name; });
  };
  for (const auto* const name : {"plain", "zb-v"}) {
    const auto row = row_of(name);
    CHECK(row["failure"].is_null());
    CHECK(row["tokens_per_second"].size() == 5);
    std::vector<double> expected;
    for (const int seconds : {1, 2, 4, 8, 16})
      expected.push_back(tokens_of_a_step / seconds);
    CHECK(row["tokens_per_second_of_pytorch"] == json(expected));
    const auto ratios = sorted_ratios(row);
    CHECK(row["ratio"] == json(ratios[2]));
    CHECK(row["ratio_range"] == json{ratios[0], ratios[4]});
  }
  for (const auto& [name, why] :
       {std::pair{
          "ddp",
          "the networks differ: PyTorch's has 1 parameters, and troupe's has 3648"},
        std::pair{"1f1b", "PyTorch 1.13 has no Schedule1F1B"},
        std::pair{"interleaved", "PyTorch's program has ended: Segmentation fault"}}) {
    CHECK(row_of(name)["failure"] == why);
    CHECK(row_of(name)["ratio"].is_null());
    CHECK_THAT(ran.out, ContainsSubstring(std::string{"not measured: "} + why + "\n"));
  }
  const auto& measured = results["measurements"];
  REQUIRE(measured.size() == 2);
  CHECK(measured[1]["name"] == "zero-bubble V, 2 ranks");
  CHECK(measured[1]["fraction"] == row_of("zb-v")["ratio"]);
}

TEST_CASE("PyTorch's programs are told to train what we do", "[programs][pytorch]") {
  const python_stand_in python;
  CHECK(python
          .bench(" --beside pytorch:plain,ddp,zb-v --quiet --optimizer sgd --lr 0.5 "
                 "--momentum 0.25 --precision bf16 --weight-decay 0.125"
                 + tiny)
          .exit_code
        == 0);
  const auto log = content_of(python.folder.path() / "log");
  CHECK(std::ranges::count(log, '\n') == 3);
  const std::string common =
    " --layers 4 --d-model 8 --heads 2 --seq 4 --vocab 7 --batch 16 --microbatches 8 "
    "--lr 0.5 --momentum 0.25 --eps 1e-08 --weight-decay 0.125\n";
  for (const std::string begins :
       {"--row plain --ranks 1 --blocks 4 --threads 2 ",
        "--row ddp --ranks 2 --blocks 4 --threads 2 ",
        "--row zb-v --ranks 2 --blocks 1,1,1,1 --threads 2 "}) {
    const auto at = log.find(begins);
    REQUIRE(at != log.npos);
    const auto line = log.substr(at, log.find('\n', at) + 1 - at);
    CHECK_THAT(line,
               ContainsSubstring(" --device cpu --precision bf16 --optimizer sgd "));
    CHECK(line.ends_with(common));
  }
}

TEST_CASE("where there is no PyTorch, or another training, bench says so",
          "[programs][pytorch]") {
  const python_stand_in without{false};
  const auto ran = without.bench(" --beside pytorch:plain,1f1b --json r.json" + tiny);
  CHECK(ran.exit_code == 1);
  const std::string why = "./python, which PYTHON names, has no PyTorch: set PYTHON to "
                          "an interpreter with PyTorch";
  CHECK_THAT(ran.out, ContainsSubstring("not measured: " + why));
  const auto beside =
    json::parse(content_of(without.folder.path() / "r.json"))["beside"];
  CHECK(beside["pytorch"].is_null());
  CHECK(beside["rows"][1]["failure"] == why);

  const auto [typed, refused] = GENERATE(table<std::string, std::string>(
    {{"tensorflow", "write pytorch, or pytorch: and names of rows"},
     {"pytorch:zbv", "there is no row 'zbv' on the CPU; the rows are plain, ddp, 1f1b"},
     {"pytorch:graphs", "there is no row 'graphs' on the CPU"},
     {"pytorch:", "no row is named; there are plain"},
     {"pytorch:plain,plain", "the row 'plain' is named twice"},
     {"pytorch --model mlp", "trains gpt: say --model gpt"},
     {"pytorch --clip 1", "does not clip: leave --clip out"},
     {"pytorch --lr-schedule cosine", "has one rate: leave --lr-schedule out"},
     {"pytorch --batch 15", "choose a --batch that is a multiple"}}));
  const auto other = python_stand_in{}.bench(" --beside " + typed);
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, ContainsSubstring(refused));
}

} // namespace troupe::beside_pytorch_test
