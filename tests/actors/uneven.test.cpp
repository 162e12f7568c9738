// SPDX-License-Identifier: BSD-3-Clause
// Microbatches of several sizes, whose sequences have several lengths.

#include "actors/proof/proof.hpp"
#include "plan/stage_pools.hpp"
#include "schedules/catalog/catalog.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <numeric>

namespace troupe::uneven_test {

using Catch::Matchers::ContainsSubstring;

namespace {

constexpr nanoseconds ms = 1'000'000;

void make_uneven(run_plan& plan, std::vector<std::int64_t> sizes,
                 std::vector<std::int64_t> lengths) {
  if (plan.work && !sizes.empty())
    plan.work->batch = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  plan.uneven = std::make_shared<const uneven_microbatches>(
    uneven_microbatches{std::move(sizes), std::move(lengths)});
}

run_result proved(run_plan plan) {
  keep_for_proofs(plan);
  REQUIRE(validation_error(plan).empty());
  auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  CHECK(result.late_allocations == 0);
  for (const auto& p : prove(plan, result)) {
    INFO(p.name << ": " << p.detail);
    CHECK(!p.fails());
  }
  return result;
}

std::string refused(run_plan plan, std::vector<std::int64_t> sizes,
                    std::vector<std::int64_t> lengths) {
  plan.uneven = std::make_shared<const uneven_microbatches>(
    uneven_microbatches{std::move(sizes), std::move(lengths)});
  return validation_error(plan);
}

} // namespace

TEST_CASE("uneven microbatches are proved right under every schedule", "[uneven]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  for (const auto& entry : tiny::one_of_each_kind({4, 8})) {
    INFO(entry.name);
    auto plan = tiny::training_of(*find_schedule(entry.name), {4, 8, 2}, clock);
    make_uneven(plan, {3, 1, 2, 5, 1, 1, 4, 2}, {4, 1, 3});
    proved(plan);
  }
}

TEST_CASE("their bits do not depend on stages and schedule", "[uneven]") {
  const auto run = [](const schedule& sch, int stages) {
    auto plan = tiny::training_of(sch, {stages, 4, 3}, clock_kind::virtual_time);
    make_uneven(plan, {2, 1, 4, 1}, {2, 4});
    return proved(plan);
  };
  const auto alone = run(naive(), 1);
  for (const auto& other : {run(gpipe(), 2), run(one_f_one_b(), 4), run(zb_v(), 4)}) {
    CHECK(other.loss == alone.loss);
    CHECK((other.parameters == alone.parameters));
  }
}

TEST_CASE("shards, replicas and experts take uneven microbatches", "[uneven]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  for (const tiny::mesh_of_ranks& mesh :
       {tiny::mesh_of_ranks{.tensor = 2},
        {.tensor = 2, .by_sequence = true},
        {.data = 2, .exchange = "zero3"},
        {.data = 2, .exchange = "server:staleness=1"},
        {.experts = true, .noise = 0.3},
        {.data = 2, .expert = 2, .experts = true, .noise = 0.3},
        {.stored = precision::bf16}})
    for (const auto& sch : {one_f_one_b(), zb_h1()}) {
      INFO(mesh.text() << " " << sch.name);
      auto plan = tiny::training_on(mesh, sch, {2, 4, 2}, clock);
      if (mesh.data == 1)
        make_uneven(plan, {3, 1, 2, 2}, {4, 2});
      else
        make_uneven(plan, {3, 1, 2, 2, 1, 1, 1, 4}, {4, 2, 2});
      plan.sch.recomputes = recomputation::ahead;
      proved(plan);
    }
}

TEST_CASE("a message has the size of its microbatch", "[uneven]") {
  auto plan = tiny::training_of(gpipe(), {3, 4, 1}, clock_kind::virtual_time);
  make_uneven(plan, {3, 1, 2, 5}, {4, 1});
  const auto result = proved(plan);
  // Tokens, of 8 values of 4 bytes; up and back, between three stages.
  const std::int64_t tokens = 3 * 4 + 1 * 1 + 2 * 4 + 5 * 1;
  CHECK(result.bytes_moved[static_cast<std::size_t>(traffic::pipeline)]
        == tokens * 8 * 4 * 2 * 2);
  CHECK(pools_of(plan, {}).boundary == 3 * 4 * 8); // the largest
}

TEST_CASE("a microbatch costs what its tokens are of the largest's", "[uneven]") {
  const auto makespan = [](const schedule& sch, int stages,
                           std::vector<std::int64_t> sizes,
                           std::vector<std::int64_t> lengths) {
    auto plan = tiny::simulation(sch, {stages, 4}, 1, 2);
    make_uneven(plan, std::move(sizes), std::move(lengths));
    REQUIRE(validation_error(plan).empty());
    return perform(plan).sums.makespan;
  };
  CHECK(makespan(gpipe(), 1, {4, 2, 1, 1}, {}) == 3 * 2 * ms); // 8 of four times 4
  CHECK(makespan(gpipe(), 1, {}, {10, 5}) == 3 * 3 * ms);
  // equal microbatches
  CHECK(makespan(gpipe(), 1, {4, 2, 4, 2}, {10, 20}) == 3 * 4 * ms);
  // rank 0  F0 =  F1 F2 F3 .  .  .  .  .  .  B0 =  =  =  B1 =  ...   in half ms: the
  // rank 1  .  .  F0 =  F1 F2 F3 B0 =  =  =  B1 =  ...               first is larger
  CHECK(makespan(gpipe(), 2, {2, 1, 1, 1}, {}) == 21 * ms / 2);
}

TEST_CASE("microbatches that cannot be so uneven are refused with what can",
          "[uneven]") {
  auto plan = tiny::training_of(gpipe(), {2, 4, 2}, clock_kind::virtual_time);
  plan.work->batch = 8;
  CHECK(refused(plan, {2, 2, 2, 2}, {4}).empty());
  CHECK_THAT(refused(plan, {2, 2, 4}, {}), ContainsSubstring("4 microbatches, but 3"));
  CHECK_THAT(refused(plan, {2, 2, 4, 0}, {}), ContainsSubstring("at least 1 sample"));
  CHECK_THAT(refused(plan, {2, 2, 2, 3}, {}),
             ContainsSubstring("adds up to 9 samples"));
  CHECK_THAT(refused(plan, {}, {4, 4, 4, 4, 4}), ContainsSubstring("but 5 lengths"));
  CHECK_THAT(refused(plan, {}, {0}), ContainsSubstring("at least 1 token"));
  CHECK_THAT(refused(plan, {}, {4, 5}), ContainsSubstring("--seq 5"));
  auto images =
    tiny::training_of(gpipe(), {2, 4, 2}, clock_kind::virtual_time, {"lenet"});
  CHECK_THAT(refused(images, {}, {4}), ContainsSubstring("gpt and moe"));
  auto shared = tiny::training_on({.tensor = 2, .by_sequence = true}, gpipe(), {2, 4},
                                  clock_kind::virtual_time);
  CHECK_THAT(refused(shared, {}, {4, 3}), ContainsSubstring("multiples of tensor=2"));
}

} // namespace troupe::uneven_test
