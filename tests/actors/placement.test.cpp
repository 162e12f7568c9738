// SPDX-License-Identifier: BSD-3-Clause
// Placements and programs that no schedule of the catalog has, run by actors.

#include "actors/proof/proof.hpp"
#include "actors/run/modelled_times.hpp"
#include "schedules/prediction.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/schedules/examples.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

namespace troupe::placement_test {

using examples::looped;
using examples::one_batch_ahead;

namespace {

run_result checked(const run_plan& plan) {
  REQUIRE(validation_error(plan).empty());
  auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  return result;
}

void check_prediction(const schedule& sch, shape dims, nanoseconds latency) {
  auto plan = tiny::simulation(sch, dims, 1, 2, 0.5);
  plan.machine.links.inside.latency = latency;
  const auto expected = predict(
    sch, dims,
    [](const action& a) { return tiny::costs(1, 2, 0.5).duration_of(a.op, a.stage); },
    [=](const action&) { return latency; });
  INFO(sch.name << " " << dims.stages << "x" << dims.microbatches);
  CHECK(draw(timeline_of(checked(plan).actions), 10'000) == draw(expected, 10'000));
}

} // namespace

TEST_CASE("a plan counts the ranks of its placement, not the stages", "[placement]") {
  auto plan = tiny::simulation(looped(gpipe(), 2), {8, 4});
  plan.mesh[axis::data] = 3;
  plan.mesh[axis::tensor] = 2;
  CHECK(plan.ranks() == 24);
  CHECK(plan.rank_of({2, 0, 5, 1}) == (2 * 4 + 1) * 2 + 1);
  const int rank = plan.rank_of({2, 0, 5, 1});
  CHECK(plan.data_of(rank) == 2);
  CHECK(plan.pipe_rank(rank) == 1);
  CHECK(plan.shard_of(rank) == 1);
  CHECK(plan.hosted_by(rank) == std::vector<position>{{2, 0, 1, 1}, {2, 0, 5, 1}});
}

TEST_CASE("actors do what a looped schedule predicts", "[placement]") {
  for (const auto& sch : {naive(), gpipe(), one_f_one_b(), two_bw(), pipedream(2),
                          ampnet(3, 2), ampnet(1, 1)})
    for (const int rounds : {2, 3})
      for (const int ranks : {1, 2, 4})
        for (const nanoseconds latency : {0, 250'000}) {
          const shape dims{rounds * ranks, 12, 2};
          check_prediction(looped(sch, rounds), dims, latency);
        }
  check_prediction(one_batch_ahead(), {3, 4, 5}, 0);
  check_prediction(one_batch_ahead(), {3, 4, 5}, 250'000);
}

TEST_CASE("actors on a looped placement, or ahead of their batch, are proved right",
          "[proof]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto sch =
    GENERATE(looped(gpipe(), 2), looped(one_f_one_b(), 4), looped(pipedream(3), 2),
             looped(two_bw(), 2), looped(ampnet(3, 2), 2), one_batch_ahead());
  for (const auto& exchange : {"", "ring", "zero3"}) {
    auto plan = tiny::training_of(sch, {4, 4, 3}, clock);
    if (*exchange != '\0') {
      plan.mesh[axis::data] = 2;
      plan.exchange = *parse_exchange(exchange);
      plan.work->batch *= 2;
    }
    if (!validation_error(plan).empty())
      continue;
    const auto result = checked(plan);
    for (const auto& p : prove(plan, result)) {
      INFO(sch.name << " " << exchange << ": " << p.name << ": " << p.detail);
      CHECK(!p.fails());
    }
    CHECK(result.late_allocations == 0);
  }
}

TEST_CASE("a looped run is the network of a plain one, bit for bit", "[placement]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  for (const auto& sch : {gpipe(), one_f_one_b(), pipedream(2), two_bw()}) {
    const auto one_a_rank = checked(tiny::training_of(sch, {8, 8, 3}, clock));
    const auto on_few = checked(tiny::training_of(looped(sch, 4), {8, 8, 3}, clock));
    CHECK(on_few.loss == one_a_rank.loss);
    CHECK((on_few.parameters == one_a_rank.parameters));
  }
}

TEST_CASE("evaluations of a looped run see what those of a plain one see",
          "[placement]") {
  for (const auto& sch : {gpipe(), pipedream(2)}) {
    auto one_a_rank = tiny::training_of(sch, {4, 4, 6}, clock_kind::real),
         on_few = tiny::training_of(looped(sch, 2), {4, 4, 6}, clock_kind::real);
    run_result result;
    const auto expected = tiny::last_evaluated(one_a_rank, result);
    REQUIRE(result.outcome == ending::finished);
    CHECK((tiny::last_evaluated(on_few, result) == expected));
    CHECK(result.outcome == ending::finished);
  }
}

TEST_CASE("the model of a looped run in time is what ran in virtual time",
          "[placement]") {
  for (const auto& sch : {looped(gpipe(), 2), looped(pipedream(), 4)}) {
    auto plan = tiny::training_of(sch, {4, 4, 3}, clock_kind::virtual_time);
    plan.mesh[axis::data] = 2;
    plan.exchange = *parse_exchange("ring");
    plan.work->batch *= 2;
    const auto ran = checked(plan).actions;
    record moved(ran.size());
    modelled_times model{plan, [&](int rank, const measured_action& s) {
                           moved[static_cast<std::size_t>(rank)].push_back(s);
                         }};
    for (std::size_t rank = ran.size(); rank-- > 0;)
      for (const auto& s : ran[rank])
        model.add(static_cast<int>(rank), s);
    model.check_end();
    CHECK(draw(timeline_of(moved), 10'000) == draw(timeline_of(ran), 10'000));
  }
}

} // namespace troupe::placement_test
