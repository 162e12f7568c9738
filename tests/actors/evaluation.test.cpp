// SPDX-License-Identifier: BSD-3-Clause
// Evaluations see the parameters that each stage had after a batch, and change no
// result.

#include "models/plain_loop.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <map>
#include <vector>

namespace troupe::evaluation_test {

namespace {

using seen_parameters = std::map<int, std::vector<std::vector<float>>>;

/// Makes a plan store a copy of the parameters at each evaluation.
seen_parameters observe(run_plan plan, int every, run_result& result) {
  seen_parameters seen;
  plan.copies.evaluate_every = every;
  const auto see = [&](int batches, const std::vector<const float*>& parameters) {
    auto& copy = seen[batches];
    for (std::size_t l = 0; l < parameters.size(); ++l)
      copy.emplace_back(parameters[l],
                        parameters[l] + plan.work->whole.layers[l]->bucket());
  };
  result = perform(plan, {.evaluate = see});
  INFO(result.failure);
  CHECK(result.outcome == ending::finished);
  CHECK(result.late_allocations == 0);
  return seen;
}

} // namespace

TEST_CASE("an evaluation sees what the run would have ended with", "[evaluation]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto entry = GENERATE(from_range(tiny::one_of_each_kind({4, 4})));
  const auto sch = *find_schedule(entry.name);
  run_result whole;
  const auto seen = observe(tiny::training_of(sch, {4, 4, 6}, clock), 2, whole);
  REQUIRE(seen.size() == 3);
  CHECK((seen.at(6) == whole.parameters));
  if (!sch.asynchronous())
    for (const int batches : {2, 4}) {
      auto shorter = tiny::training_of(sch, {4, 4, batches}, clock);
      CHECK((perform(shorter).parameters == seen.at(batches)));
    }
}

TEST_CASE("evaluations change neither bits nor virtual time", "[evaluation]") {
  const auto entry = GENERATE(from_range(tiny::one_of_each_kind({4, 4})));
  const auto plan =
    tiny::training_of(*find_schedule(entry.name), {4, 4, 6}, clock_kind::virtual_time);
  run_result with;
  observe(plan, 1, with);
  const auto without = perform(plan);
  CHECK(with.loss == without.loss);
  CHECK((with.parameters == without.parameters));
  CHECK(with.sums.makespan == without.sums.makespan);
}

// The order of messages within an instant decides the version that replicas read.
TEST_CASE("evaluations change no order of data replicas that update one by one",
          "[evaluation]") {
  const auto* const exchange =
    GENERATE("hogwild", "server:async", "server:staleness=1");
  const auto& sch = GENERATE(from_range(std::vector{naive(), gpipe(), pipedream(1)}));
  auto plan = tiny::training_on({.data = 2, .exchange = exchange}, sch, {4, 3, 4},
                                clock_kind::virtual_time);
  run_result with;
  observe(plan, 1, with);
  const auto without = perform(plan);
  INFO(exchange << " under " << sch.name);
  CHECK((with.parameters == without.parameters));
  CHECK(with.sums.makespan == without.sums.makespan);
}

TEST_CASE("evaluations do not change the bits of fixed programs in real time",
          "[evaluation]") {
  for (const auto& sch : {naive(), gpipe(), one_f_one_b(), chimera(), pipedream(3),
                          pipedream(1, true), two_bw()}) {
    const auto plan = tiny::training_of(sch, {4, 4, 6}, clock_kind::real);
    run_result with;
    observe(plan, 1, with);
    const auto without = perform(plan);
    CHECK(with.loss == without.loss);
    CHECK((with.parameters == without.parameters));
  }
}

} // namespace troupe::evaluation_test
