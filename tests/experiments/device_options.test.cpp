// SPDX-License-Identifier: BSD-3-Clause
// Tests the messages of --device, on machines with and without GPUs.

#include "experiments/options/run_options.hpp"
#include "tests/experiments/tiny_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace troupe::device_options_test {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("devices are the CPU, all GPUs, or a list that ranks take in turns",
          "[device]") {
  using list = std::vector<processor>;
  CHECK(parse_devices("cpu", 2) == list{});
  CHECK(parse_devices("cpu,cpu", 2) == list{});
  CHECK(parse_devices("cuda", 1) == list{{0}});
  CHECK(parse_devices("cuda", 3) == list{{0}, {1}, {2}});
  CHECK(parse_devices("cuda:1,cpu,cuda:0", 2) == list{{1}, {}, {0}});
  CHECK(parse_devices("cuda:0,cuda:0", 1) == list{{0}, {0}});
}

TEST_CASE("words that name no device, and GPUs that are not there, are refused",
          "[device]") {
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1.5", "cuda:01", "cpu,",
                           "cuda,cpu", "CUDA", "cuda:99999999999", "cuda: 0"}) {
    INFO(text);
    const auto parsed = parse_devices(text, 2);
    REQUIRE(!parsed);
    CHECK_THAT(
      parsed.error(),
      ContainsSubstring(
        "write only cpu, only cuda, or a list, for example cuda:0,cuda:1,cpu"));
  }
  CHECK(parse_devices("cuda:2", 2).error()
        == "--device cuda:2: this machine has 2 GPUs, from cuda:0 to cuda:1");
  CHECK(parse_devices("cuda:1", 1).error()
        == "--device cuda:1: this machine has one GPU, cuda:0");
}

TEST_CASE("tf32 is of GPUs", "[device]") {
  typed_run typed;
  typed.precision = "tf32";
  CHECK(parse(typed).error()
        == "--precision tf32 applies only to products on GPUs: say --device cuda too, "
           "or --precision fp32");
  typed.device = "cuda";
  if (absence_of_gpus().empty())
    CHECK(parse(typed)->processors.front().tf32);
}

TEST_CASE("algorithms are chosen for GPUs", "[device]") {
  typed_run typed;
  typed.choose = "choices.csv";
  CHECK(parse(typed).error()
        == "--choose times algorithms of a GPU: say --device cuda too, or leave "
           "--choose out");
}

TEST_CASE("a machine without GPUs says so", "[device]") {
  typed_run typed;
  typed.device = "cuda";
  const auto parsed = parse(typed);
  if (!absence_of_gpus().empty())
    CHECK(parsed.error() == "--device cuda: " + absence_of_gpus());
  else
    CHECK(std::ssize(parsed->processors) == count_of_gpus());
}

TEST_CASE("GPUs of nodes are not looked for on this machine", "[device]") {
  typed_run typed;
  typed.on_nodes = true;
  typed.device = "cuda:7,cpu";
  typed.precision = "tf32";
  const auto listed = parse(typed);
  REQUIRE(listed);
  CHECK(listed->processors == std::vector<processor>{{7, true}, {}});
  CHECK(listed->lists_processors);
  typed.device = "cuda";
  const auto all = parse(typed);
  REQUIRE(all);
  CHECK(all->processors == std::vector<processor>{{0, true}});
  CHECK_FALSE(all->lists_processors);
}

TEST_CASE("a processor that no rank would have is refused, and not of all GPUs",
          "[device]") {
  auto asked = parse(tiny::options_of("1f1b"), true).value();
  asked.mesh.stages = 1;
  asked.run.processors = {processor{}, processor{0}};
  asked.run.lists_processors = true;
  CHECK(set_up(asked).error()
        == "--device lists 2 processors for one rank: list at most one processor for "
           "each rank");
  asked.run.lists_processors = false;
  CHECK(set_up(asked).has_value());
}

} // namespace troupe::device_options_test
