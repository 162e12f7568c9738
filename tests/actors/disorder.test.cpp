// SPDX-License-Identifier: BSD-3-Clause
// Runs whose devices start works late, and whose ends are reported late: bits must not
// depend on such delays.

#include "tests/actors/brittle_layer.hpp"
#include "tests/actors/proved_run.hpp"
#include "tests/actors/seeded_devices.hpp"
#include "tests/actors/split_schedules.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

namespace troupe::disorder_test {

namespace {

/// Number of seeds for each run; the environment can ask for more.
std::uint64_t seeds() {
  const char* const asked = std::getenv("TROUPE_SEEDS");
  return asked != nullptr ? std::stoull(asked) : 2;
}

/// The errors that proofs report of a run in disorder, or the run's failure.
std::string refusals(run_plan plan, std::uint64_t seed) {
  keep_for_proofs(plan);
  auto result = perform(plan, {.disorder = tiny::disorder_of(seed)});
  if (result.outcome != ending::finished)
    return result.failure;
  const auto by = rule_of(plan.sch);
  plan.machine.clock = clock_kind::real; // real times follow no formula
  plan.machine.threads = 1;              // as in virtual time
  return tiny::proved_run{std::move(plan), std::move(result), by}.refusals();
}

/// With every other seed sums are work of such devices too.
void check(run_plan plan, const std::string& of) {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    plan.machine.sum_rate = seed % 2 == 1 ? 1e9 : 0;
    INFO(of << ", seed " << seed);
    CHECK(refusals(plan, seed) == "");
  }
}

const std::vector<tiny::mesh_of_ranks> meshes{
  {},
  {.data = 2, .exchange = "ring"},
  {.data = 3, .exchange = "tree", .clips = true},
  {.data = 2, .exchange = "halving"},
  {.data = 2, .exchange = "server"},
  {.data = 2, .exchange = "zero1"},
  {.data = 2, .exchange = "zero2", .clips = true},
  {.data = 3, .exchange = "zero3"},
  {.tensor = 2},
  {.data = 2, .tensor = 2, .exchange = "zero3", .by_sequence = true},
  {.data = 2, .expert = 2, .experts = true},
  {.data = 2, .exchange = "server:async"},
  {.data = 2, .exchange = "server:staleness=1"}};

std::vector<schedule> all_kinds() {
  auto result = tiny::all_kinds();
  result.push_back(tiny::split_ahead());
  result.push_back(tiny::split_at_once());
  return result;
}

} // namespace

TEST_CASE("devices that take their time change no bit", "[disorder]") {
  const auto& mesh = GENERATE(from_range(meshes));
  const auto& sch = GENERATE(from_range(all_kinds()));
  const int stages = GENERATE(1, 2, 4);
  const auto plan =
    tiny::training_on(mesh, sch, {stages, 4, 3}, clock_kind::virtual_time);
  if (!validation_error(plan).empty()
      || !tests::tries(25, {mesh.text(), tiny::kind_of(sch), std::to_string(stages)}))
    return;
  check(plan, mesh.text() + " under " + sch.name);
}

TEST_CASE("a pass that fails with another in line behind it ends the run",
          "[disorder]") {
  for (const bool split : {false, true}) {
    auto plan = tiny::training_on({}, split ? tiny::split_at_once() : one_f_one_b(),
                                  {2, 4, 3}, clock_kind::virtual_time);
    auto& layers = plan.work->whole.layers;
    layers.back() = std::make_shared<tiny::brittle_layer>(
      layers.back(), 13, [] { throw std::runtime_error{"the layer broke"}; });
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
      const auto result = perform(plan, {.disorder = tiny::disorder_of(seed)});
      CHECK(result.outcome == ending::failed);
      CHECK(result.failure == "stage 1: the layer broke");
    }
  }
}

TEST_CASE("a run whose devices take their time evaluates what an orderly one does",
          "[disorder]") {
  const auto& sch = GENERATE(from_range(all_kinds()));
  const int microbatches = GENERATE(1, 4);
  auto plan =
    tiny::training_on({}, sch, {4, microbatches, 3}, clock_kind::virtual_time);
  plan.copies.evaluate_every = 1;
  if (sch.local_rule() || !validation_error(plan).empty())
    return; // a local rule's evaluations depend on time
  const auto evaluated = [&](virtual_disorder disorder) {
    std::vector<float> all;
    const auto see = [&](int, const std::vector<const float*>& parameters) {
      for (std::size_t l = 0; l < parameters.size(); ++l)
        all.insert(all.end(), parameters[l],
                   parameters[l] + plan.work->whole.layers[l]->bucket());
    };
    CHECK(perform(plan, {.evaluate = see, .disorder = std::move(disorder)}).outcome
          == ending::finished);
    return all;
  };
  const auto right = evaluated({});
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed)
    CHECK(evaluated(tiny::disorder_of(seed)) == right);
}

TEST_CASE("one seed gives one run", "[disorder]") {
  auto plan = tiny::training_on({.data = 2, .exchange = "server:async"}, pipedream(),
                                {4, 4, 3}, clock_kind::virtual_time);
  const auto run = [&](std::uint64_t seed) {
    return perform(plan, {.disorder = tiny::disorder_of(seed)});
  };
  const auto a = run(1), b = run(1), c = run(2);
  CHECK(a.parameters == b.parameters);
  CHECK(a.seconds >= 0);
  CHECK(a.parameters != c.parameters); // the servers received pushes in another order
}

} // namespace troupe::disorder_test
