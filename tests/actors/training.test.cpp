// SPDX-License-Identifier: BSD-3-Clause
// Whole runs on tiny models: the results of the actors, with both clocks.

#include "actors/proof/proof.hpp"
#include "actors/proof/replay.hpp"
#include "tests/actors/split_schedules.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

namespace troupe::training_test {

namespace {

#ifdef TROUPE_SANITIZED // twenty times slower: one size of each kind
const std::vector all_stages{1, 3, 4};
const std::vector all_microbatches{2, 5, 8};
#else
const std::vector all_stages{1, 2, 3, 4, 5, 6, 7, 8};
const std::vector all_microbatches{1, 2, 3, 4, 5, 6, 8, 12, 13, 32};
#endif

run_result checked(const run_plan& plan) {
  REQUIRE(validation_error(plan).empty());
  auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  return result;
}

void check_proofs(const run_plan& plan) {
  const auto result = checked(plan);
  for (const auto& p : prove(plan, result)) {
    INFO(plan.sch.name << " " << plan.dims.stages << "x" << plan.dims.microbatches
                       << "x" << plan.dims.steps << ": " << p.name << ": " << p.detail);
    CHECK(!p.fails());
  }
  CHECK(result.late_allocations == 0);
}

} // namespace

TEST_CASE("every schedule is proved right at every size, in both clocks", "[proof]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto& entry = GENERATE(from_range(catalog()));
  for (const int stages : all_stages)
    for (const int microbatches : all_microbatches) {
      const auto sch = *find_schedule(entry.name);
      const shape dims{stages, microbatches, 3};
      if (validation_error(sch, dims).empty())
        check_proofs(tiny::training_of(sch, dims, clock));
    }
}

TEST_CASE("microbatches of uneven size, uneven cuts and several threads change nothing",
          "[proof]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto entry = GENERATE(from_range(tiny::one_of_each_kind({4, 4})));
  for (const int threads : {1, 2, 5}) {
    auto plan = tiny::training_of(*find_schedule(entry.name), {4, 4, 3}, clock,
                                  tiny::gpt(), 11, threads);
    plan.work->first_layers = *cut(plan.work->whole, 4, {1, 4, 2, 1});
    check_proofs(plan);
  }
}

TEST_CASE("schedules with parameters are proved right", "[proof]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  for (const auto& sch : {pipedream(2), pipedream(3), pipedream(1, true),
                          pipedream(3, true), ampnet(1, 1), ampnet(8, 1), ampnet(8, 3)})
    check_proofs(tiny::training_of(sch, {4, 4, 3}, clock));
}

TEST_CASE("image models are proved right", "[proof]") {
  const auto entry = GENERATE(from_range(tiny::one_of_each_kind({4, 4})));
  for (const char* model : {"mlp", "lenet", "lenet5"})
    check_proofs(tiny::training_of(*find_schedule(entry.name), {4, 4, 2},
                                   clock_kind::real, {model, 5, 12}));
}

TEST_CASE("clipping uses the one global norm, or each stage's own", "[proof]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  for (const auto& sch : {naive(), gpipe(), one_f_one_b(), chimera(),
                          chimera({.forward_doubling = true}), two_bw()}) {
    auto plan = tiny::training_of(sch, {4, 4, 3}, clock);
    plan.work->optimizer.clip = 0.1;
    check_proofs(plan);
  }
  for (const auto& sch : {gpipe(), pipedream(), ampnet(4, 2)}) {
    auto plan = tiny::training_of(sch, {4, 4, 3}, clock);
    plan.work->optimizer.clip = 0.1;
    plan.work->optimizer.scope = clip_scope::stage;
    check_proofs(plan);
  }
}

TEST_CASE("a schedule that splits its backwards gives the bits of one that does not",
          "[proof]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  for (const auto& split : {tiny::split_ahead(), tiny::split_at_once()})
    for (const char* model : {"gpt", "lenet"}) {
      auto options = tiny::gpt();
      options.model = model;
      check_proofs(tiny::training_of(split, {4, 4, 2}, clock, options));
      const auto a = checked(tiny::training_of(split, {4, 4, 2}, clock, options));
      const auto b = checked(tiny::training_of(gpipe(), {4, 4, 2}, clock, options));
      CHECK(a.loss == b.loss);
      CHECK((a.parameters == b.parameters));
    }
}

TEST_CASE("flush schedules all train the same network", "[training]") {
  std::vector<run_result> results;
  for (const auto& sch : {naive(), gpipe(), one_f_one_b()})
    results.push_back(checked(tiny::training_of(sch, {4, 4, 4}, clock_kind::real)));
  for (const auto& r : results) {
    CHECK(r.loss == results.front().loss);
    CHECK((r.parameters == results.front().parameters));
    CHECK(r.loss.size() == 4);
    CHECK(r.loss_samples == std::vector<std::int64_t>{8, 16, 24, 32});
  }
  CHECK(results[0].loss.back() < results[0].loss.front());
}

TEST_CASE("in virtual time ampnet trains reproducibly on any number of ranks",
          "[training]") {
  const auto plan =
    tiny::training_of(ampnet(16, 2), {8, 8, 4}, clock_kind::virtual_time);
  const auto a = checked(plan), b = checked(plan);
  CHECK(a.loss == b.loss);
  CHECK((a.parameters == b.parameters));
  CHECK(a.sums.max_staleness == b.sums.max_staleness);
  CHECK(a.sums.makespan == b.sums.makespan);
}

TEST_CASE("peaks and versions of a training are the schedule's", "[training]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto result = checked(tiny::training_of(pipedream(), {4, 8, 3}, clock));
  CHECK(result.sums.peak_activations == std::vector{4, 3, 2, 1});
  CHECK(result.sums.weight_versions == std::vector{4, 3, 2, 1});
  CHECK(result.sums.max_staleness == std::vector{3, 2, 1, 0});
  const auto flushed = checked(tiny::training_of(one_f_one_b(), {4, 8, 3}, clock));
  CHECK(flushed.sums.weight_versions == std::vector{1, 1, 1, 1});
  CHECK(result.peak_bytes.front() > flushed.peak_bytes.front()); // three versions more
  CHECK(result.peak_bytes.size() == 4);
}

TEST_CASE("envelopes under way are bounded, however long the run", "[training]") {
  const auto entry = GENERATE(from_range(tiny::one_of_each_kind({4, 8})));
  const auto sch = *find_schedule(entry.name);
  for (const int steps : {2, 40}) {
    auto plan = tiny::training_of(sch, {4, 8, steps}, clock_kind::real, tiny::gpt(4));
    const auto result = checked(plan);
    // Wiring first; then each actor has a few messages under way, and each rank as many
    // as may be stashed.
    CHECK(result.most_envelopes < 40 + 4 * 8 * 4);
    CHECK(result.envelopes > 4 * 8 * steps * 4);
  }
}

} // namespace troupe::training_test
