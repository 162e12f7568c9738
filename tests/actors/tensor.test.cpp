// SPDX-License-Identifier: BSD-3-Clause
// Tensor shards: several ranks that compute one stage together.

#include "actors/proof/proof.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>

namespace troupe::tensor_test {

using Catch::Matchers::ContainsSubstring;

namespace {

const model_options model{"gpt", 4, 16, 4, 4, 11};

run_plan sharded(const schedule& sch, shape dims, int tensor, clock_kind clock,
                 int data = 1, const std::string& exchange = "ring") {
  auto plan = tiny::training_of(sch, dims, clock, model);
  plan.mesh[axis::tensor] = tensor;
  plan.mesh[axis::data] = data;
  plan.exchange = find_exchange(exchange);
  plan.work->batch = 2 * data * dims.microbatches + 1;
  plan.work->shards = *make_shards<float>(model, tensor);
  plan.work->optimizer = {.name = "sgd", .rate = 0.1};
  return plan;
}

run_result check_proofs(run_plan plan) {
  keep_for_proofs(plan);
  auto result = perform(plan);
  INFO(plan.sch.name << " " << plan.mesh[axis::data] << "x" << plan.dims.stages << "x"
                     << plan.mesh[axis::tensor] << ": " << result.failure);
  REQUIRE(result.outcome == ending::finished);
  for (const auto& p : prove(plan, result)) {
    INFO(p.name << ": " << p.detail);
    CHECK(!p.fails());
  }
  return result;
}

run_plan by_sequence(run_plan plan) {
  plan.sequence_parallel = true;
  plan.work->shards = *make_shards<float>(model, plan.mesh[axis::tensor], true);
  return plan;
}

std::int64_t moved(const run_result& result, traffic what) {
  return result.bytes_moved[static_cast<std::size_t>(what)];
}

run_result simulated(int tensor, double sum_bytes, bool sequence_parallel = false) {
  auto plan = tiny::simulation(*find_schedule("gpipe"), {1, 1, 1});
  plan.mesh[axis::tensor] = tensor;
  plan.sequence_parallel = sequence_parallel;
  plan.machine.cost = costs_from(tiny::costs(12, 24), tensor);
  plan.machine.links.inside = {.latency = 100'000, .bytes_per_second = 1e9};
  plan.work.simulated().sum = sum_bytes;
  auto result = perform(plan);
  REQUIRE(result.outcome == ending::finished);
  return result;
}

/// One forward of 1 ms and one backward of 2 ms on each of `tensor` shards.
double makespan_ms(int tensor, double sum_bytes, bool sequence_parallel = false) {
  const auto result = simulated(tensor, sum_bytes, sequence_parallel);
  return static_cast<double>(result.sums.makespan) * 1e-6;
}

} // namespace

TEST_CASE("tensor shards train what one device would", "[tensor]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto* const name =
    GENERATE("naive", "gpipe", "1f1b", "chimera", "2bw", "pipedream");
  const int tensor = GENERATE(2, 4);
  check_proofs(sharded(*find_schedule(name), {2, 4, 3}, tensor, clock));
}

TEST_CASE("tensor shards work together with stages, replicas and ZeRO", "[tensor]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto* const exchange = GENERATE("halving", "zero1", "zero2", "zero3");
  const auto* const name = GENERATE("1f1b", "chimera", "pipedream");
  auto plan = sharded(*find_schedule(name), {2, 4, 3}, 2, clock, 2, exchange);
  plan.machine.links.inside = {.latency = 100'000, .bytes_per_second = 1e6};
  check_proofs(plan);
}

TEST_CASE("any number of updates of tensor shards can be proved", "[tensor]") {
  const auto sch = GENERATE(one_f_one_b(), chimera(), pipedream(3));
  const bool sgd = GENERATE(false, true);
#ifdef TROUPE_SANITIZED
  const int steps = 8;
#else
  const int steps = 40;
#endif
  auto plan = sharded(sch, {2, 4, steps}, 2, clock_kind::virtual_time);
  plan.work->optimizer.schedule = {.cosine = true, .warmup = 30, .floor = 0.1};
  plan.work->optimizer.weight_decay = 0.1;
  plan.work->optimizer.momentum = sgd ? 0.9 : 0;
  if (!sgd) {
    plan.work->optimizer.name = "adamw";
    plan.work->optimizer.rate = 0.003;
  }
  check_proofs(plan);
}

TEST_CASE("tensor shards clip by one norm, which counts what all have once",
          "[tensor]") {
  const auto scope = GENERATE(clip_scope::network, clip_scope::stage);
  const auto* const exchange = GENERATE("ring", "zero1", "zero2", "zero3");
  auto plan = sharded(*find_schedule("1f1b"), {2, 4, 3}, 2, clock_kind::virtual_time, 2,
                      exchange);
  plan.work->optimizer.clip = 0.05;
  plan.work->optimizer.scope = scope;
  check_proofs(plan);
}

TEST_CASE("two runs of tensor shards give the same bits", "[tensor]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  auto plan = sharded(*find_schedule("1f1b"), {2, 4, 3}, 4, clock);
  if (GENERATE(false, true))
    plan = by_sequence(plan);
  const auto a = perform(plan), b = perform(plan);
  CHECK((a.parameters == b.parameters));
  CHECK((a.gradients == b.gradients));
  CHECK((a.loss == b.loss));
}

TEST_CASE("evaluations see the network that shards and replicas make together",
          "[tensor]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto* const exchange = GENERATE("ring", "zero2", "zero3");
  auto plan = sharded(*find_schedule("1f1b"), {2, 4, 3}, 2, clock, 2, exchange);
  run_result result;
  const auto last = tiny::last_evaluated(plan, result);
  REQUIRE(result.outcome == ending::finished);
  REQUIRE(last.size() == result.parameters.size());
  CHECK((last == result.parameters));
}

TEST_CASE("by sequence shards train what one device would", "[tensor]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto* const name =
    GENERATE("naive", "gpipe", "1f1b", "chimera", "2bw", "pipedream");
  const int tensor = GENERATE(2, 4);
  check_proofs(by_sequence(sharded(*find_schedule(name), {2, 4, 3}, tensor, clock)));
}

TEST_CASE("by sequence shards work with stages, replicas, ZeRO and clipping",
          "[tensor]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto* const exchange = GENERATE("ring", "zero1", "zero2", "zero3");
  const auto* const name = GENERATE("1f1b", "chimera", "pipedream");
  auto plan =
    by_sequence(sharded(*find_schedule(name), {2, 4, 3}, 2, clock, 2, exchange));
  plan.machine.links.inside = {.latency = 100'000, .bytes_per_second = 1e6};
  plan.work->optimizer.clip = plan.sch.asynchronous() ? 0 : 0.05;
  check_proofs(plan);
}

TEST_CASE("by sequence stages send a share each, and shards as much as before",
          "[tensor]") {
  const int tensor = GENERATE(2, 4);
  const auto alike =
    sharded(*find_schedule("1f1b"), {2, 4, 3}, tensor, clock_kind::virtual_time);
  const auto a = perform(alike), b = perform(by_sequence(alike));
  REQUIRE(b.outcome == ending::finished);
  CHECK(moved(b, traffic::pipeline) * tensor == moved(a, traffic::pipeline));
  // Values that the backward gathers again, and the gradients of norms, come on top.
  CHECK(moved(b, traffic::tensor) > moved(a, traffic::tensor));
  CHECK(moved(b, traffic::tensor) < moved(a, traffic::tensor) * 3 / 2);
  for (std::size_t rank = 0; rank < b.peak_bytes.size(); ++rank)
    CHECK(b.peak_parts[rank][static_cast<std::size_t>(memory_use::activations)]
          < a.peak_parts[rank][static_cast<std::size_t>(memory_use::activations)]);
}

TEST_CASE("two shards take half an action and a message a sum", "[tensor]") {
  CHECK(makespan_ms(1, 0) == 36);
  // Two sums in each pass; in each sum one shard sends the other the whole array.
  CHECK(std::abs(makespan_ms(2, 1e6) - (18 + 4 * (0.1 + 1))) < 1e-3);
  // By sequence, shards gather half, and send half for a sum in one more round. A
  // backward gathers twice as much.
  CHECK(std::abs(makespan_ms(2, 1e6, true) - (18 + 4 * (0.2 + 1) + 2 * 0.5)) < 1e-3);
  // Four rounds among four: a half and a quarter, and back again.
  CHECK(std::abs(makespan_ms(4, 1e6) - (9 + 4 * (4 * 0.1 + 1.5))) < 1e-3);
  CHECK(std::abs(makespan_ms(4, 1e6, true) - makespan_ms(4, 1e6) - 2 * 0.75) < 1e-3);
  for (const int tensor : {2, 4})
    CHECK(4 * moved(simulated(tensor, 1e6, true), traffic::tensor)
          == 5 * moved(simulated(tensor, 1e6), traffic::tensor));
}

TEST_CASE("local rules and tensor shards do not mix", "[tensor]") {
  auto plan = tiny::simulation(*find_schedule("ampnet"), {2, 4, 1});
  plan.mesh[axis::tensor] = 2;
  CHECK_THAT(validation_error(plan), ContainsSubstring("give --mesh tensor=1"));
}

} // namespace troupe::tensor_test
