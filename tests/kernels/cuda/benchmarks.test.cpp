// bench on a GPU that is none: its numbers say nothing, but it measures what it says.

#include "experiments/benchmarks/benchmarks.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace troupe;

TEST_CASE("a GPU's ceilings and training are measured on it", "[streams]") {
  auto plan =
    tiny::training_of(one_f_one_b(), {1, 2, 1}, clock_kind::real, {"mlp", 4, 6});
  plan.processors = {processor{0}};
  std::vector<measurement> all;
  const options asked{};
  const benchmark b{
    asked, plan, {.model = "mlp"}, [&](const measurement& m) { all.push_back(m); }, 8};
  measure_gpu(b);
  measure_training(b);
  const auto has = [&](const std::string& name) {
    return std::ranges::count(all, name, &measurement::name) == 1;
  };
  for (const auto* const name :
       {"product 8^3 of fp32 on cuda:0", "product 8^3 of bf16 on cuda:0",
        "product 8^3 of tf32 on cuda:0", "copy of memory on cuda:0",
        "bare loop, one GPU", "one stage's actors, one GPU", "1f1b, 2 ranks",
        "1f1b, 4 ranks"})
    CHECK(has(name));
  CHECK(std::ranges::all_of(all, [](const auto& m) { return m.value > 0; }));
  CHECK(std::ranges::none_of(
    all, [](const auto& m) { return m.name.find("core") != std::string::npos; }));
}
