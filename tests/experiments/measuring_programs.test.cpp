// SPDX-License-Identifier: BSD-3-Clause
// Tests the programs that measure and prove: verify, collectives, memory. Also tests
// the bytes that runs send.

#include "experiments/benchmarks/model_operations.hpp"
#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace troupe::measuring_programs_test {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

const std::string tiny = " --d-model 8 --heads 2 --seq 4 --vocab 7 ";

} // namespace

TEST_CASE("verify's exit code is whether all proofs hold", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(folder, "verify --steps 2" + tiny);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("plain loop: equal to the bit"));
  CHECK_THAT(ran.out, ContainsSubstring("replay: equal to the bit"));
  CHECK_THAT(ran.out, ContainsSubstring("11 runs, 0 that fail"));
}

TEST_CASE("a local rule in virtual time is what its prediction says", "[programs]") {
  temporary_folder folder;
  const std::string cost = GENERATE("", " --cost F=1,B=2,latency=0.1,bandwidth=1e6");
  const auto ran = run_program_in(
    folder, "verify --schedule ampnet --clock virtual --steps 3" + cost + tiny);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
}

TEST_CASE("collectives measures and checks every algorithm at every number of ranks",
          "[programs]") {
  temporary_folder folder;
  CHECK_THAT(run_program_in(folder, "collectives --help-all").out,
             ContainsSubstring("--ranks") && ContainsSubstring("all_reduce halving"));
  const auto ran = run_program_in(
    folder, "collectives --ranks 1,4,6 --bytes 48000 --latency 0.1 --bandwidth 1e8 "
            "--json r.json");
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("\n4 ranks") && ContainsSubstring("\n6 ranks")
                        && !ContainsSubstring("WRONG"));
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  CHECK(results["runs"].size() % 3 == 0);
  for (const auto& run : results["runs"]) {
    CHECK(run["right"] == true);
    CHECK(run["messages"] == run["book"]["messages"]);
    if (run["algorithm"] == "ring" && run["operation"] == "all_reduce"
        && run["ranks"] == 4) {
      CHECK(run["rounds"] == 6);
      CHECK(run["bytes"] == 6 * 48000);
      CHECK(run["peak_bytes"] == 12000);
      CHECK(run["seconds"] == run["book"]["seconds"]);
    }
  }
  CHECK(results["ring_beats_tree"][0]["bytes"].is_null());
  CHECK(results["ring_beats_tree"][1]["bytes"] > 0);
}

TEST_CASE("a collective of one operation and algorithm runs alone", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(folder, "collectives --operation broadcast,reduce "
                                          "--algorithm tree --json -");
  CHECK(ran.exit_code == 0);
  CHECK(json::parse(ran.out)["runs"].size() == 2);
}

TEST_CASE("bench counts the operations that a causal model's formula has",
          "[programs]") {
  const bool tied = GENERATE(false, true);
  troupe::model_options m{"gpt", 3, 8, 2, 5, 11};
  m.tied = tied;
  const auto whole = troupe::make_network<float>(m);
  REQUIRE(whole);
  double products = 0; // of a token's forward
  for (int block = 0; block < 3; ++block) {
    products += 8 * 24 + 24 + 8 * 8 + 8;          // attention's matrices and biases
    products += 8 * 32 + 32 + 32 * 8 + 8 + 4 * 8; // feed-forward, and two norms
    double pairs = 0;
    for (int position = 1; position <= 5; ++position)
      pairs += position - 0.5;     // a half pair for the token itself
    products += 2 * 8 * pairs / 5; // scores, and sums of values
  }
  products += 2 * 8 + 8 * 11; // the last norm, and the head
  // Each product is a multiplication and an addition; a backward has twice as many.
  CHECK(std::abs(troupe::operations_a_token(*whole, m) - 6 * products) < 1e-6);
}

#ifndef TROUPE_SANITIZED // ten minutes
TEST_CASE("bench measures the parts that are named", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(
    folder, "bench --parts actors,training --threads 1 --json r.json" + tiny);
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  std::vector<std::string> parts;
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  for (const auto& m : results["measurements"])
    if (parts.empty() || parts.back() != m["part"].get<std::string>())
      parts.push_back(m["part"]);
  CHECK(parts == std::vector<std::string>{"training", "actors"}); // in bench's order
}
#endif

TEST_CASE("bench refuses parts that do not exist", "[programs]") {
  temporary_folder folder;
  const auto [typed, refused] = GENERATE(table<std::string, std::string>(
    {{"trainings", "there is no part 'trainings' on the CPU; the parts are ceilings"},
     {"checks", "there is no part 'checks' on the CPU"},
     {"training,", "there is no part '' on the CPU"},
     {"training --beside pytorch", "leave --parts or --beside out"}}));
  const auto other = run_program_in(folder, "bench --parts " + typed + tiny);
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, ContainsSubstring(refused));
}

TEST_CASE("memory measures every level of ZeRO beside its formulas", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(
    folder, "memory --mesh data=2,pipe=2,tensor=2 --seq 8 --steps 1 --json r.json");
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("by formula") && ContainsSubstring("zero3"));
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  REQUIRE(results["runs"].size() == 4);
  for (const auto& run : results["runs"]) {
    CHECK(run["ranks"].size() == 8);
    double copied = 0;
    for (const auto& rank : run["ranks"])
      copied += rank["checkpoint"].get<double>();
    // Parameters and two moments, each once over all ranks.
    CHECK(std::abs(copied / (12 * results["parameters"].get<double>()) - 1) < 0.02);
    for (const auto& rank : run["ranks"])
      for (const char* use : {"parameters", "gradients", "optimizer"}) {
        const double measured = rank[use], book = rank["book"][use];
        CHECK(std::abs(measured / book - 1) < 0.02);
      }
  }
}

TEST_CASE("formulas of ZeRO hold for what a run holds and sends, or are absent",
          "[programs]") {
  const auto [typed, has_formula] = GENERATE(
    std::pair{"--schedule pipedream:update_every=3 --steps 2", false},
    std::pair{"--schedule 2bw --microbatches 8 --recompute stage", false},
    std::pair{"--schedule 1f1b --recompute stage", true},
    std::pair{"--schedule gpipe --recompute stage,ahead --clip 0.1", true},
    std::pair{"--schedule chimera --tied", true},
    std::pair{"--schedule chimera --recompute stage --optimizer sgd --momentum 0.9",
              true},
    std::pair{"--schedule zb-h1 --recompute stage --precision bf16", true},
    std::pair{"--schedule zb-v --layers 4 --optimizer sgd", true},
    std::pair{"--schedule interleaved --layers 4 --sequence-lengths 4,2", true},
    std::pair{"--schedule dualpipe --microbatches 16 --microbatch-sizes "
              "1,2,1,1,1,1,1,1,1,1,1,1,1,1,1,3",
              true},
    std::pair{"--schedule 1f1b --mesh data=2,pipe=2,tensor=2 --sequence-parallel "
              "--recompute stage",
              true});
  temporary_folder folder;
  std::string words =
    " --d-model 64 --heads 4 --seq 4 --vocab 64 --json r.json --quiet ";
  const std::string wish{typed};
  if (wish.find("--mesh") == std::string::npos)
    words += "--mesh data=2,pipe=2 ";
  if (wish.find("--layers") == std::string::npos)
    words += "--layers 2 ";
  if (wish.find("--microbatches") == std::string::npos)
    words += "--microbatches 8 ";
  const auto ran = run_program_in(folder, "memory" + words + wish);
  INFO(wish << "\n" << ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto near = [](double measured, double book) {
    return std::abs(measured - book) <= 0.02 * book;
  };
  bool all_have = true;
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  for (const auto& run : results["runs"]) {
    INFO(run["exchange"]);
    for (const char* kind : {"gradients", "parameters"}) {
      INFO(kind << ": " << run["moved"][kind] << " " << run["moved"]["book"][kind]);
      CHECK(near(run["moved"][kind], run["moved"]["book"][kind]));
    }
    for (const auto& rank : run["ranks"]) {
      all_have = all_have && !rank["book"].is_null();
      for (const char* use : {"parameters", "gradients", "optimizer"}) {
        INFO(use << " " << rank[use] << " " << rank["book"]);
        CHECK((rank["book"].is_null() || near(rank[use], rank["book"][use])));
      }
    }
  }
  CHECK(all_have == has_formula);
}

TEST_CASE("memory refuses what its formulas do not know", "[programs]") {
  temporary_folder folder;
  const auto [typed, advice] =
    GENERATE(std::pair{"--model moe", "--model moe is not allowed"},
             std::pair{"--mesh data=2 --recompute blocks=1", "--recompute stage"});
  const auto ran = run_program_in(folder, "memory " + std::string{typed});
  INFO(ran.err);
  CHECK(ran.exit_code == 2);
  CHECK(ran.out.empty());
  CHECK_THAT(ran.err, ContainsSubstring(advice));
}

TEST_CASE("by sequence stages send a share each, and results say so", "[programs]") {
  temporary_folder folder;
  double sent[2];
  for (const bool by_sequence : {false, true}) {
    const auto ran = run_program_in(
      folder, "train --mesh pipe=2,tensor=2 --schedule 1f1b --steps 1 "
              "--json r.json"
                + std::string{by_sequence ? " --sequence-parallel" : ""} + tiny);
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
    CHECK((ran.out.find("2 tensor shards by sequence") != std::string::npos)
          == by_sequence);
    const auto run = json::parse(content_of(folder.path() / "r.json"))["runs"][0];
    CHECK(run["sequence_parallel"] == by_sequence);
    sent[by_sequence] = run["bytes_moved"]["pipeline"];
  }
  // 16 samples of 4 tokens of 8 floats, forward and backward, for each of 2 shards.
  CHECK(sent[0] == 16 * 4 * 8 * 4 * 2 * 2);
  CHECK(sent[0] == 2 * sent[1]);
}

TEST_CASE("gradients in bf16 are proved, in any exchange that sums", "[programs]") {
  temporary_folder folder;
  for (const std::string exchange :
       {"naive", "tree", "ring", "halving", "server", "zero1", "zero2", "zero3"}) {
    const auto ran = run_program_in(
      folder, "verify --mesh data=3,pipe=2 --schedules 1f1b,2bw --microbatches 6 "
              "--batch 13 --steps 3 --compress bf16 --exchange "
                + exchange + tiny);
    INFO(exchange << ": " << ran.out << ran.err);
    CHECK(ran.exit_code == 0);
    CHECK_THAT(ran.out, ContainsSubstring("replay: equal to the bit"));
  }
}

TEST_CASE("gradients in bf16 are half the bytes of messages, in any exchange that sums",
          "[programs]") {
  temporary_folder folder;
  const auto result_of = [&](const std::string& typed) {
    const auto ran = run_program_in(folder, typed + " --quiet --json r.json");
    INFO(typed << ": " << ran.err);
    REQUIRE(ran.exit_code == 0);
    return json::parse(content_of(folder.path() / "r.json"))["runs"][0];
  };
  for (const std::string exchange :
       {"naive", "tree", "ring", "halving", "server", "zero1", "zero2", "zero3"}) {
    const auto command =
      "train --mesh data=3,pipe=2 --microbatches 6 --batch 12 --steps 4 --exchange "
      + exchange + tiny;
    const auto whole = result_of(command),
               half = result_of(command + " --compress bf16");
    INFO(exchange);
    CHECK(whole["compress"] == "none");
    CHECK(half["compress"] == "bf16");
    const double before = whole["bytes_moved"]["gradients"],
                 after = half["bytes_moved"]["gradients"];
    CHECK(before > 0);
    CHECK(2 * after >= before);
    CHECK(2 * after < before * 1.02); // a message is a multiple of four bytes
    CHECK(whole["bytes_moved"]["parameters"] == half["bytes_moved"]["parameters"]);
    CHECK(whole["loss"] != half["loss"]);
    const double loss = whole["loss"].back(), rounded = half["loss"].back();
    CHECK(std::abs(loss - rounded) < 0.01);
  }
  const std::string simulated =
    "simulate --mesh data=2,pipe=2 --schedule gpipe --microbatches 4 --steps 2 --cost "
    "F=1,B=2,gradient=1e6,bandwidth=1e8";
  const auto slow = result_of(simulated),
             fast = result_of(simulated + " --compress bf16");
  CHECK(slow["bytes_moved"]["gradients"] == 8'000'000); // 2 updates, 4 ranks, 1 MB each
  CHECK(fast["bytes_moved"]["gradients"] == 4'000'000);
  CHECK(fast["makespan"] < slow["makespan"]);
}

} // namespace troupe::measuring_programs_test
