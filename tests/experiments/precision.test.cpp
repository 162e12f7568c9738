// SPDX-License-Identifier: BSD-3-Clause
// Products of bf16 from a user's side. The choice of instructions changes bits only
// where the documents say so, and the rounding of products does not harm learning.

#include "kernels/bf16_block.hpp"
#include "tests/experiments/run_program.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace troupe::precision_test {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

const std::string tiny =
  " --d-model 16 --heads 2 --seq 8 --vocab 11 --layers 4 --batch 8 --microbatches 4 "
  "--evaluate-samples 0 --quiet ";

/// Sets the environment's choice of instructions for products, during the object's
/// lifetime.
class by_instructions {
public:
  explicit by_instructions(const std::string& name) {
    setenv("TROUPE_BF16", name.c_str(), 1);
  }
  ~by_instructions() { unsetenv("TROUPE_BF16"); }
  by_instructions(const by_instructions&) = delete;
  by_instructions& operator=(const by_instructions&) = delete;
};

/// Returns the weights that a training saves.
std::string trained(const std::string& how, std::string& said) {
  temporary_folder folder;
  const auto result =
    run_program_in(folder, "train" + tiny + "--steps 3 --save w.safetensors " + how);
  REQUIRE(result.exit_code == 0);
  said = result.err;
  return content_of(folder.path() / "w.safetensors");
}

} // namespace

TEST_CASE("products of bf16 have the same bits with AMX and by any processor",
          "[precision]") {
  const std::string model = GENERATE("--model gpt", "--model moe --experts 2",
                                     "--model gpt --tied", "--model gpt --stages 2");
  std::string said;
  const auto exact = trained(model, said);
  CHECK(said.empty());
  std::string plain;
  {
    const by_instructions named{"plain"};
    plain = trained(model + " --precision bf16", said);
    CHECK_THAT(said,
               ContainsSubstring("TROUPE_BF16=plain, and take many times as long"));
    CHECK((trained(model + " --precision bf16 --threads 3", said) == plain));
    CHECK((trained(model, said) == exact)); // fp32 gives the same bits as before
  }
  CHECK((plain != exact));
  const auto all = bf16_paths();
  if (std::ranges::find(all, bf16_path::amx) == all.end())
    return;
  const by_instructions named{"amx"};
  CHECK((trained(model + " --precision bf16", said) == plain));
  CHECK(said.empty());
  CHECK((trained(model + " --precision bf16 --threads 3", said) == plain));
}

TEST_CASE("every set of instructions trains, and proves what it trained",
          "[precision]") {
  for (const auto path : bf16_paths()) {
    const by_instructions named{to_text(path)};
    temporary_folder folder;
    const std::string sharing =
      GENERATE("--mesh data=2,pipe=2 --exchange zero1", "--mesh pipe=2,tensor=2",
               "--mesh pipe=2,tensor=2 --sequence-parallel",
               "--model moe --experts 2 --shared-expert --stages 2",
               "--mesh data=2,pipe=1,expert=2 --model moe --experts 2");
    if (!tests::tries(3, {to_text(path), sharing}))
      continue;
    const auto proved = run_program_in(
      folder, "verify --precision bf16 --schedules 1f1b,pipedream --steps 2 " + sharing
                + " --d-model 16 --heads 2 --seq 8 --vocab 11 --layers 4 --batch 8 "
                  "--microbatches 4");
    INFO(to_text(path) << ' ' << sharing << proved.err);
    CHECK(proved.exit_code == 0);
    CHECK_THAT(proved.out, ContainsSubstring("0 that fail"));
  }
}

TEST_CASE("results and checkpoints say the path of bf16, and a resumed run keeps it",
          "[precision][resumed]") {
  temporary_folder folder;
  const auto ran = [&](const std::string& path, const std::string& typed) {
    const by_instructions named{path};
    return run_program_in(folder, "train" + tiny
                                    + "--checkpoint c --checkpoint-every 2 "
                                      "--json r.json "
                                    + typed);
  };
  const auto path_of_results = [&] {
    return json::parse(content_of(folder.path() / "r.json"))["runs"][0]["bf16_path"];
  };
  REQUIRE(ran("plain", "--steps 2 --precision bf16").exit_code == 0);
  CHECK(path_of_results() == "plain");
  const std::string resume = "--steps 4 --resume c ";
  const auto other = ran("widen", resume);
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, ContainsSubstring(
                          "c/batch-2 was trained with TROUPE_BF16 amx or plain, and "
                          "this run has widen: set TROUPE_BF16=amx or plain, or "
                          "say --change precision"));
  CHECK(ran("plain", resume).exit_code == 0);
  CHECK(path_of_results() == "plain");
  std::filesystem::remove_all(folder.path() / "c/batch-4");
  CHECK(ran("widen", resume + "--change precision").exit_code == 0);
  CHECK(path_of_results() == "widen");
  // In fp32 the choice of instructions changes nothing.
  temporary_folder exact;
  const auto in_fp32 = [&](const std::string& path, const std::string& typed) {
    const by_instructions named{path};
    return run_program_in(exact, "train" + tiny
                                   + "--checkpoint c --checkpoint-every 2 "
                                     "--json r.json "
                                   + typed);
  };
  REQUIRE(in_fp32("plain", "--steps 2").exit_code == 0);
  CHECK(
    json::parse(content_of(exact.path() / "r.json"))["runs"][0]["bf16_path"].is_null());
  CHECK(in_fp32("widen", resume).exit_code == 0);
}

TEST_CASE("evaluate says the path of bf16", "[precision][inference]") {
  temporary_folder folder;
  const by_instructions named{"plain"};
  const std::string sizes =
    " --d-model 16 --heads 2 --seq 8 --vocab 11 --layers 2 --quiet ";
  REQUIRE(run_program_in(folder, "train" + sizes
                                   + "--stages 2 --batch 8 --microbatches 4 --steps 1 "
                                     "--evaluate-samples 0 --save w.safetensors")
            .exit_code
          == 0);
  const auto evaluated = [&](const std::string& precision) {
    return run_program_in(folder, "evaluate" + sizes
                                    + "--weights w.safetensors --samples 4 --json "
                                      "r.json --precision "
                                    + precision);
  };
  const auto path = [&] {
    return json::parse(content_of(folder.path() / "r.json"))["bf16_path"];
  };
  const auto in_bf16 = evaluated("bf16");
  CHECK(in_bf16.exit_code == 0);
  CHECK_THAT(in_bf16.err, ContainsSubstring("TROUPE_BF16=plain"));
  CHECK(path() == "plain");
  const auto in_fp32 = evaluated("fp32");
  CHECK(in_fp32.exit_code == 0);
  CHECK_THAT(in_fp32.err, !ContainsSubstring("TROUPE_BF16"));
  CHECK(path().is_null());
}

TEST_CASE("a simulation sends half the bytes where real runs send bf16",
          "[precision]") {
  temporary_folder folder;
  // Makespans computed by hand, in milliseconds: 1 MB over 1 GB/s takes 1 ms.
  const auto makespan = [&](const std::string& what, const std::string& precision) {
    const auto ran =
      run_program_in(folder, "simulate --quiet --json r.json " + what
                               + ",bandwidth=1e9 --precision " + precision);
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
    CHECK(ran.err.empty());
    const auto run = json::parse(content_of(folder.path() / "r.json"))["runs"][0];
    CHECK(run["precision"] == precision);
    return Catch::Matchers::WithinAbs(run["makespan"].get<double>() * 1000, 1e-4);
  };
  const std::string one = "--schedule naive --microbatches 1 ";
  // F 1, activation, F 1, B 2, gradient, B 2
  const auto two_stages = one + "--stages 2 --cost F=1,B=2,bytes=4e6";
  CHECK_THAT(6 + 4 + 4, makespan(two_stages, "fp32"));
  CHECK_THAT(6 + 2 + 2, makespan(two_stages, "bf16"));
  // Each of two shards computes one half, and sends the other shard all summands. Both
  // stages do so in turn; a byte between stages takes no time.
  const std::string sums = "--cost F=2,B=4,bytes=1,sums=1,tensor=4e6";
  const auto shards = one + "--mesh pipe=2,tensor=2 " + sums;
  CHECK_THAT(2 * (3 + 4 + 4), makespan(shards, "fp32"));
  CHECK_THAT(2 * (3 + 4 + 4), makespan(shards, "bf16"));
  // With sequence parallelism a shard sends one half of each gathered array, once
  // before a forward and twice before a backward. After either, a shard sends one half
  // of the summed array.
  const auto by_sequence = one + "--sequence-parallel --mesh pipe=2,tensor=2 " + sums;
  CHECK_THAT(2 * (3 + (2 + 2) + (4 + 2)), makespan(by_sequence, "fp32"));
  CHECK_THAT(2 * (3 + (1 + 2) + (2 + 2)), makespan(by_sequence, "bf16"));
  // Two data replicas, one microbatch each: one half of the gradient goes around the
  // ring twice, in fp32 also under bf16. Stage 1 begins first, so that the byte for
  // stage 0 waits for the first half at stage 1's port.
  const auto replicas = "--schedule naive --microbatches 2 --mesh data=2,pipe=2 --cost "
                        "F=1,B=2,bytes=1,gradient=4e6";
  CHECK_THAT(6 + 2 + 2 + 2, makespan(replicas, "fp32"));
  CHECK_THAT(6 + 2 + 2 + 2, makespan(replicas, "bf16"));
  // Rows are sent to the experts and returned, in a forward and in a backward.
  const auto experts =
    "--schedule naive --microbatches 2 --mesh data=2,pipe=2,expert=2 --cost "
    "F=1,B=2,bytes=1,experts=4e6";
  CHECK_THAT(2 * (3 + 4 * 2), makespan(experts, "fp32"));
  CHECK_THAT(2 * (3 + 4 * 2), makespan(experts, "bf16"));
}

TEST_CASE("a mistake about precision gets one sentence", "[precision]") {
  temporary_folder folder;
  const auto wrong = run_program_in(folder, "train" + tiny + "--precision fp8");
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, ContainsSubstring("write fp32, bf16, or tf32"));
  const by_instructions named{"sse"};
  const auto none = run_program_in(folder, "train" + tiny + "--precision bf16");
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err,
             ContainsSubstring("TROUPE_BF16=sse") && ContainsSubstring("plain"));
  const auto weightless =
    run_program_in(folder, "simulate --cost F=1,tensor=4 --mesh pipe=2,tensor=2 "
                           "--precision bf16");
  CHECK(weightless.exit_code == 2);
  CHECK(run_program_in(folder, "train" + tiny + "--steps 1").exit_code == 0);
}

#ifndef TROUPE_SANITIZED // slow cases, which other builds run
TEST_CASE("results say the precision, and bf16 learns what fp32 learns",
          "[precision]") {
  temporary_folder folder;
  const auto final_loss = [&](const std::string& precision) {
    const auto result = run_program_in(
      folder, "train --d-model 32 --heads 2 --seq 16 --vocab 11 --layers 4 --batch 16 "
              "--microbatches 4 --evaluate-samples 0 --quiet --steps 60 --lr 0.003 "
              "--json r.json --precision "
                + precision);
    REQUIRE(result.exit_code == 0);
    const auto run = json::parse(content_of(folder.path() / "r.json"))["runs"][0];
    CHECK(run["precision"] == precision);
    return run["loss"].back().get<double>();
  };
  const double exact = final_loss("fp32");
  CHECK(exact < 2.3); // the network has learnt: log 11 is 2.40
  CHECK_THAT(final_loss("bf16"), Catch::Matchers::WithinAbs(exact, 0.02));
}
#endif

} // namespace troupe::precision_test
