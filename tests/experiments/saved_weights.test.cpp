// SPDX-License-Identifier: BSD-3-Clause
// Weights that runs save: after an interruption, and the programs that load the
// weights.

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>

namespace troupe::saved_weights_test {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

const std::string tiny = " --d-model 8 --heads 2 --seq 4 --vocab 7 ";

/// A weight file's tensors, without the metadata of the run.
std::string tensors_of(const std::filesystem::path& file) {
  const auto content = content_of(file);
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), sizeof length);
  auto header = json::parse(content.substr(sizeof length, length));
  header.erase("__metadata__");
  return header.dump() + content.substr(sizeof length + length);
}

} // namespace

TEST_CASE("weights saved as bf16 take half the bytes, and load", "[programs]") {
  temporary_folder folder;
  const auto train = [&](const std::string& more) {
    return run_program_in(folder, "train --stages 2 --quiet --steps 1" + tiny + more);
  };
  CHECK(train("--save w.safetensors").exit_code == 0);
  CHECK(train("--save h.safetensors --save-precision bf16").exit_code == 0);
  const auto header_of = [&](const char* file) {
    const auto content = content_of(folder.path() / file);
    std::uint64_t length = 0;
    std::memcpy(&length, content.data(), sizeof length);
    const auto bytes = content.size() - sizeof length - length;
    return std::pair{json::parse(content.substr(sizeof length, length)), bytes};
  };
  const auto [exact, bytes] = header_of("w.safetensors");
  const auto [rounded, half] = header_of("h.safetensors");
  CHECK(bytes == 2 * half);
  CHECK(exact["lm_head.weight"]["dtype"] == "F32");
  CHECK(rounded["lm_head.weight"]["dtype"] == "BF16");
  // Nothing is learnt, so values that were rounded once are saved unchanged.
  CHECK(train("--init h.safetensors --lr 0 --save g.safetensors --save-precision bf16")
          .exit_code
        == 0);
  CHECK((tensors_of(folder.path() / "g.safetensors")
         == tensors_of(folder.path() / "h.safetensors")));
}

TEST_CASE("saved weights go on where they were, under any schedule and cut",
          "[programs]") {
  temporary_folder folder;
  const auto first = run_program_in(
    folder, "train --steps 4 --stages 2 --save w.safetensors --json a.json" + tiny);
  CHECK(first.exit_code == 0);
  const auto next = run_program_in(
    folder, "train --steps 1 --stages 4 --schedule gpipe --lr 0 --init w.safetensors "
            "--json b.json"
              + tiny);
  CHECK(next.exit_code == 0);
  const auto a = json::parse(content_of(folder.path() / "a.json"))["runs"][0];
  const auto b = json::parse(content_of(folder.path() / "b.json"))["runs"][0];
  CHECK(a["evaluation"] == b["evaluation"]);
}

TEST_CASE("a loss that is not finite ends the run and says where", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(
    folder, "train --steps 50 --optimizer sgd --lr 1e30 --json r.json" + tiny);
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, ContainsSubstring("stage 3"));
  CHECK_THAT(ran.err, ContainsSubstring("microbatch"));
  CHECK_THAT(ran.err, ContainsSubstring("version"));
  const auto run = json::parse(content_of(folder.path() / "r.json"))["runs"][0];
  CHECK(run["ending"] == "failed");
}

TEST_CASE("a last update that diverges leaves the weights that were saved before",
          "[programs]") {
  temporary_folder folder;
  REQUIRE(run_program_in(folder, "train --steps 1 --save w" + tiny).exit_code == 0);
  const auto before = content_of(folder.path() / "w");
  const auto ran = run_program_in(folder, "train --steps 1 --lr 1e308 --save w" + tiny);
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, ContainsSubstring("weights are not finite: transformer."));
  CHECK((content_of(folder.path() / "w") == before));
}

TEST_CASE("weights saved under one mesh load under any other", "[programs]") {
  temporary_folder folder;
  const auto train = [&](const std::string& how) {
    const auto ran = run_program_in(
      folder, "train --quiet --evaluate-samples 10 --mesh " + how + tiny);
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
  };
  const std::string save = " --schedule 1f1b --steps 2 --save a.safetensors";
  const std::string load =
    " --init a.safetensors --lr 0 --steps 1 --save b.safetensors";
  SECTION("of gpt") {
    train("data=2,pipe=2,tensor=2 --exchange zero3" + save);
    const std::string mesh = GENERATE(
      "pipe=1", "pipe=1,tensor=2", "pipe=2,tensor=2 --sequence-parallel",
      "data=4,pipe=2 --exchange zero1", "data=2,pipe=2,tensor=2 --exchange zero2",
      "data=2,pipe=2 --exchange server:async");
    train(mesh + load);
  }
  SECTION("of moe") {
    const std::string moe = " --model moe --experts 4";
    train("data=2,pipe=2,expert=2" + moe + save);
    const std::string mesh =
      GENERATE("pipe=1", "data=4,pipe=2,expert=4", "data=2,pipe=1 --exchange zero1");
    train(mesh + moe + load);
  }
  CHECK((tensors_of(folder.path() / "a.safetensors")
         == tensors_of(folder.path() / "b.safetensors")));
}

TEST_CASE("signals that end a run keep weights, results and traces", "[programs]") {
  temporary_folder folder;
  const auto in = [&](const char* name) { return (folder.path() / name).string(); };
  // With clipping by 1, the stages' updates wait for one another.
  const auto [signal, clip] = GENERATE(table<int, std::string>(
    {{SIGINT, "0"},
     {SIGINT, "1"},
     {SIGTERM, "1"},
     {SIGHUP, "0"},
     {SIGUSR1, "1"}, // batch systems announce a job's end by this signal
     {SIGUSR2, "0"},
     {SIGXCPU, "0"}}));
  CHECK(exit_code_after(signal,
                        {"train",
                         "--clip",
                         clip,
                         "--steps",
                         "1000000",
                         "--save",
                         in("w.safetensors"),
                         "--report",
                         in("r"),
                         "--d-model",
                         "8",
                         "--heads",
                         "2",
                         "--seq",
                         "4",
                         "--vocab",
                         "7",
                         "--evaluate-every",
                         "1",
                         "--evaluate-samples",
                         "1"},
                        false, "step 1: evaluated") // at least one update
        == 130);
  const auto run = json::parse(content_of(in("r/results.json")))["runs"][0];
  CHECK(run["ending"] == "interrupted");
  CHECK(run["samples"] < 16'000'000);
  CHECK_FALSE(json::parse(content_of(in("r/trace-1f1b.json")))["traceEvents"].empty());
  const auto updates = run["updates"];
  CHECK(updates == json{updates[0], updates[0], updates[0], updates[0]});
  REQUIRE(updates[0] > 0);
  const auto exact = run_program_in(folder, "train --save v.safetensors --clip " + clip
                                              + " --steps " + updates[0].dump() + tiny);
  CHECK(exact.exit_code == 0);
  const auto saved = content_of(folder.path() / "w.safetensors");
  CHECK((saved == content_of(folder.path() / "v.safetensors")));
  CHECK_THAT(saved.substr(0, 1000),
             ContainsSubstring(R"("update":")" + updates[0].dump() + R"(")"));
  const auto next =
    run_program_in(folder, "train --steps 1 --init w.safetensors" + tiny);
  CHECK(next.exit_code == 0);
}

TEST_CASE("seeds of data and of weights are apart", "[programs]") {
  const temporary_folder folder;
  const auto results_of = [&](const std::string& typed) {
    const auto ran = run_program_in(folder, typed + " --quiet --json -"
                                              + (typed[0] == 't' ? tiny : ""));
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
    return json::parse(ran.out);
  };
  const std::string two = "train --stages 2 --steps 2 ";
  const auto losses = [&](const std::string& seeds) {
    return results_of(two + seeds)["runs"][0]["loss"];
  };
  const auto usual = losses("--seed 1");
  CHECK(losses("--seed 4 --data-seed 1 --init-seed 1") == usual);
  const auto other_data = losses("--seed 1 --data-seed 2"),
             other_weights = losses("--seed 1 --init-seed 2"),
             both = losses("--seed 2");
  CHECK(other_data != usual);
  CHECK(other_weights != usual);
  CHECK(other_data != other_weights);
  CHECK(losses("--seed 2 --data-seed 1") == other_weights);
  CHECK(losses("--seed 2 --init-seed 1") == other_data);
  CHECK(both != other_data);
  // A file of weights records the seed of its data.
  const auto trained = results_of(two + "--data-seed 2 --save w.safetensors");
  CHECK(trained["data_seed"] == 2);
  CHECK(trained["init_seed"] == 1);
  CHECK(results_of("evaluate --weights w.safetensors --samples 1000")["loss"]
        == trained["runs"][0]["evaluation"]["loss"]);
  CHECK_THAT(
    run_program_in(folder, two + "--init w.safetensors --init-seed 3" + tiny).err,
    ContainsSubstring("--init-seed draws initial weights, and this run reads "
                      "weights: leave --init-seed out"));
}

} // namespace troupe::saved_weights_test
