// SPDX-License-Identifier: BSD-3-Clause
// Sums that take time in virtual time: the duration of runs, computed by hand, and bits
// that must not change.

#include "tests/actors/proved_run.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace troupe::sum_cost_test {

using Catch::Matchers::ContainsSubstring;

namespace {

constexpr nanoseconds ms = 1'000'000;

/// Data replicas of one stage, four microbatches of F=1, B=2 in one batch. Each sum of
/// a bucket's chunk takes `chunk`.
run_plan adding(const std::string& exchange, int data, int buckets, nanoseconds chunk) {
  constexpr int values = 12; // of a bucket, a chunk of which has `values / data`
  auto plan = tiny::replicas(exchange, data, buckets, values);
  plan.machine.sum_rate = 4.0 * values / data * 1e9 / static_cast<double>(chunk);
  return plan;
}

nanoseconds makespan_of(const run_plan& plan) {
  REQUIRE(validation_error(plan).empty());
  const auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  return result.sums.makespan;
}

} // namespace

// The last backward ends at 12 ms; with two buckets the first half, of bucket 1, ends
// at 11. Messages take no time, and all ranks do the same at once. In two rounds each
// rank adds a chunk of each bucket, 5 ms each; two more rounds only copy.
//
//   ms             11        16        21        26        31
//   device   B3=======|12                                 U
//   sums           | 1, first | 0, first | 1, then | 0, then |
TEST_CASE("sums of two buckets around a ring of three take turns", "[sum_cost]") {
  CHECK(makespan_of(adding("ring", 3, 1, 5 * ms)) == (12 + 2 * 5) * ms);
  CHECK(makespan_of(adding("ring", 3, 2, 5 * ms)) == (11 + 4 * 5) * ms);
}

// By ZeRO 1 each of two ranks adds half of a bucket, and gathered values are copied.
TEST_CASE("copies take no time", "[sum_cost]") {
  CHECK(makespan_of(adding("zero1", 2, 1, 5 * ms)) == (12 + 5) * ms);
  CHECK(makespan_of(adding("ring", 2, 1, 5 * ms)) == (12 + 5) * ms);
}

// Sums run beside the device's work: the sum of bucket 1 ends when the backward ends.
TEST_CASE("a sum runs beside the backward of other buckets", "[sum_cost]") {
  CHECK(makespan_of(adding("zero1", 2, 2, ms)) == (12 + 1) * ms);
  CHECK(makespan_of(adding("zero1", 2, 2, 3 * ms)) == (11 + 2 * 3) * ms);
}

// Two tensor shards sum once in a forward and once in a backward of four microbatches:
// nothing hides these sums. By doubling each adds all of the 8 bytes.
TEST_CASE("tensor shards wait for their sums", "[sum_cost]") {
  auto plan = tiny::simulation(one_f_one_b(), {1, 4});
  plan.mesh[axis::tensor] = 2;
  plan.work.simulated().sum = 8;
  plan.work.simulated().sums = 1;
  const auto at_once = makespan_of(plan);
  plan.machine.sum_rate = 8 / 1e-3;
  CHECK(makespan_of(plan) == at_once + 4 * 2 * ms);
}

// Each backward by ZeRO 2 sums the only bucket, and the backward's end waits for the
// sum: four backwards are 5 ms longer each.
TEST_CASE("by ZeRO 2 every backward waits for its sums", "[sum_cost]") {
  CHECK(makespan_of(adding("zero2", 2, 1, 5 * ms)) == (12 + 4 * 5) * ms);
}

TEST_CASE("a data replica that is slower adds more slowly", "[sum_cost]") {
  auto plan = adding("tree", 2, 1, 5 * ms); // the root adds both halves: 10 ms
  CHECK(makespan_of(plan) == (12 + 10) * ms);
  plan.machine.slowdowns = {2, 1};
  CHECK(makespan_of(plan) == 2 * (12 + 10) * ms);
  plan.machine.slowdowns = {1, 2}; // the root waits for the other
  CHECK(makespan_of(plan) == (2 * 12 + 10) * ms);
}

namespace {

const std::vector<tiny::mesh_of_ranks> meshes{
  {.data = 3, .exchange = "ring", .clips = true},
  {.data = 3, .exchange = "tree"},
  {.data = 4, .exchange = "halving"},
  {.data = 3, .exchange = "naive"},
  {.data = 2, .exchange = "zero1"},
  {.data = 2, .exchange = "zero2", .clips = true},
  {.data = 3, .exchange = "zero3"},
  {.tensor = 2},
  {.data = 2, .tensor = 2, .exchange = "zero3", .by_sequence = true},
  {.data = 4, .expert = 2, .exchange = "zero1", .experts = true}};

tiny::proved_run run_on(run_plan plan, double sum_rate, bool ports) {
  plan.machine.sum_rate = sum_rate;
  if (ports)
    plan.machine.links.inside = {.latency = 1000, .bytes_per_second = 1e8};
  return tiny::run_of(std::move(plan));
}

} // namespace

TEST_CASE("sums that take time change no bit, and every proof holds", "[sum_cost]") {
  const auto& mesh = GENERATE(from_range(meshes));
  const auto sch = GENERATE(one_f_one_b(), chimera(), pipedream());
  const auto plan = tiny::training_on(mesh, sch, {2, 4, 2}, clock_kind::virtual_time);
  if (!validation_error(plan).empty() || !tests::tries(4, {mesh.text(), sch.name}))
    return;
  INFO(mesh.text() << " under " << sch.name);
  for (const bool ports : {false, true}) {
    const auto at_once = run_on(plan, 0, ports), slow = run_on(plan, 1e6, ports);
    CHECK(slow.refusals() == "");
    CHECK(slow.result.parameters == at_once.result.parameters);
    CHECK(slow.result.loss == at_once.result.loss);
    CHECK(slow.result.sums.makespan > at_once.result.sums.makespan);
  }
}

TEST_CASE("ends of a tied matrix add in time, to the same bits", "[sum_cost]") {
  auto plan = tiny::training_on({.data = 2, .exchange = "zero1"}, one_f_one_b(),
                                {2, 4, 2}, clock_kind::virtual_time);
  model_options model{"gpt", 4, 8, 2, 4, 12};
  model.tied = true;
  plan.work->whole = *make_network<float>(model);
  plan.work->weights = initial_weights(plan.work->whole, 3);
  const auto at_once = run_on(plan, 0, false), slow = run_on(plan, 1e6, false);
  CHECK(slow.refusals() == "");
  CHECK(slow.result.parameters == at_once.result.parameters);
  CHECK(slow.result.sums.makespan > at_once.result.sums.makespan);
}

TEST_CASE("in real time nobody waits for the cost of a sum", "[sum_cost]") {
  auto plan = tiny::replicas("ring", 2, 1, 4);
  CHECK_FALSE(plan.machine.sums_take_time());
  plan.machine.sum_rate = 1;
  CHECK(plan.machine.sums_take_time());
  plan.machine.clock = clock_kind::real;
  CHECK_FALSE(plan.machine.sums_take_time());
}

// Ends of sums hold buffers for the answers, longer than actors would.
TEST_CASE("a run may fail while sums are under way", "[sum_cost]") {
  const auto* const exchange = GENERATE("ring", "zero1");
  const auto rate = GENERATE(1e4, 1e5, 1e6);
  auto plan = tiny::training_on({.data = 2, .exchange = exchange}, pipedream(1),
                                {2, 2, 40}, clock_kind::virtual_time);
  plan.work->optimizer = {.name = "sgd", .rate = 1e30, .momentum = 0.5};
  plan.machine.links.inside = {.latency = ms, .bytes_per_second = 1e7};
  plan.machine.sum_rate = rate;
  const auto result = perform(plan);
  CHECK(result.outcome == ending::failed);
  CHECK_THAT(result.failure, ContainsSubstring("is not finite"));
}

} // namespace troupe::sum_cost_test
