// Forwards that are run again before their backwards: the same bits, in less memory,
// for the time of a forward more.

#include "actors/pipeline/stage_pools.hpp"
#include "actors/proof/proof.hpp"
#include "schedules/catalog/catalog.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace troupe;
using Catch::Matchers::ContainsSubstring;

namespace {

run_result finished(const run_plan& plan) {
  REQUIRE(refusal(plan).empty());
  auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.how == ending::finished);
  CHECK(result.late_allocations == 0);
  return result;
}

nanoseconds makespan(run_plan plan) {
  plan.recomputes = true;
  return finished(plan).sums.makespan;
}

} // namespace

TEST_CASE("a run that recomputes has the bits of one that keeps all", "[recompute]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  for (const auto& sch : {gpipe(), one_f_one_b(), chimera(), pipedream(2), two_bw(),
                          interleaved(2), zb_h2(), zb_v(), dualpipev()}) {
    auto plan = tiny::training_of(sch, {4, 8, 3}, clock);
    if (!refusal(plan).empty())
      continue;
    INFO(sch.name);
    const auto all = finished(plan);
    plan.recomputes = true;
    const auto again = finished(plan);
    CHECK(again.loss == all.loss);
    CHECK((again.parameters == all.parameters));
    const int input = 2 * 4 * 8 * 4; // bytes of a microbatch: samples, positions, width
    for (std::size_t rank = 0; rank < all.peak_bytes.size(); ++rank)
      CHECK(again.peak_bytes[rank] <= all.peak_bytes[rank] + 2 * input);
    for (const auto& p : prove(plan, again)) {
      INFO(p.name << ": " << p.detail);
      CHECK((!p.fails() || p.name == "formula")); // a backward takes longer than said
    }
  }
}

TEST_CASE("a stage that recomputes keeps no stash but one", "[recompute]") {
  auto plan = tiny::training_of(gpipe(), {2, 16, 1}, clock_kind::virtual_time);
  const auto kept = pools_of(plan, {});
  plan.recomputes = true;
  const auto again = pools_of(plan, {});
  CHECK(kept.stashes == 16);
  CHECK(again.stashes == 1);
  CHECK(again.bytes() < kept.bytes());
  plan.sch = zb_h2(); // those between I and W stay
  CHECK(pools_of(plan, {}).stashes == plan.bounds_of({0, 0}).split_backward + 1);
}

TEST_CASE("recomputation takes a forward more of each backward", "[recompute]") {
  const nanoseconds ms = 1'000'000;
  const auto took = [&](const schedule& sch, const shape& dims) {
    return makespan(tiny::simulation(sch, dims, 1, 2, 0));
  };
  CHECK(took(gpipe(), {4, 8}) == (8 + 3) * (1 + 2 + 1) * ms);
  CHECK(took(one_f_one_b(), {4, 8}) == (8 + 3) * (1 + 2 + 1) * ms);
  CHECK(took(zb_h1(), {1, 4}) == 4 * (1 + 2 + 1) * ms);    // with I, and not with W
  CHECK(took(dualpipe(), {2, 4}) == 4 * (1 + 2 + 1) * ms); // also in pairs
}

TEST_CASE("what cannot be recomputed is refused", "[recompute]") {
  auto plan = tiny::training_of(ampnet(), {2, 4, 2}, clock_kind::virtual_time);
  plan.recomputes = true;
  CHECK_THAT(refusal(plan), ContainsSubstring("keeps no version"));
  plan.sch = gpipe();
  CHECK(refusal(plan).empty());
  plan.data = 2;
  plan.exchange = *parse_exchange("zero3");
  CHECK_THAT(refusal(plan), ContainsSubstring("nobody else has a part in them"));
  plan.exchange = *parse_exchange("zero1");
  CHECK(refusal(plan).empty());
}

TEST_CASE("a pair may cost less than its two", "[recompute]") {
  auto plan = tiny::simulation(dualpipe(), {2, 4}, 1, 2, 0);
  auto table = tiny::costs(1, 2, 0);
  CHECK(finished(plan).sums.makespan == 12'000'000);
  table.pair = {2'000'000}; // the pair of each rank is 1 ms shorter
  plan.cost = costs_from(table);
  CHECK(finished(plan).sums.makespan == 11'000'000);
}
