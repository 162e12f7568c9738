// SPDX-License-Identifier: BSD-3-Clause
// Data replicas: several pipelines that sum gradients.

#include "actors/proof/proof.hpp"
#include "messaging/collective_catalog.hpp"
#include "plan/stage_pools.hpp"
#include "tests/actors/brittle_data.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <stdexcept>

namespace troupe::replicas_test {

namespace {

const std::vector data_sizes{2, 3, 4}, stage_counts{1, 2, 4};

std::optional<replica_exchange> exchange_by(const std::string& name) {
  return find_exchange(name);
}

run_plan replicated(run_plan plan, int data, const std::string& exchange = "ring") {
  plan.mesh[axis::data] = data;
  plan.exchange = exchange_by(exchange);
  if (plan.work)
    plan.work->batch = std::int64_t{data} * plan.dims.microbatches + 1;
  return plan;
}

void check_proofs(const run_plan& plan) {
  REQUIRE(validation_error(plan).empty());
  const auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  for (const auto& p : prove(plan, result)) {
    INFO(plan.sch.name << " " << plan.mesh[axis::data] << "x" << plan.dims.stages << "x"
                       << plan.dims.microbatches << " by " << plan.exchange->name
                       << ": " << p.name << ": " << p.detail);
    CHECK(!p.fails());
  }
  CHECK(result.late_allocations == 0);
  CHECK(result.reserved_bytes == bytes_needed(plan));
}

/// A simulated batch on two data replicas of one stage, F 10 ms and B 20 ms, whose
/// gradients take `exchange_ms` to send once.
run_result batch_of(double exchange_ms, int buckets, int data = 2,
                    const char* exchange = "ring") {
  auto plan =
    replicated(tiny::simulation(*find_schedule("gpipe"), {1, 1, 1}, 10, 20), data);
  plan.exchange = find_exchange(exchange);
  plan.machine.links.inside.bytes_per_second = 1e9;
  plan.work.simulated().gradient = exchange_ms * 1e6;
  plan.work.simulated().buckets = buckets;
  auto result = perform(plan);
  REQUIRE(result.outcome == ending::finished);
  return result;
}

double makespan_ms(double exchange_ms, int buckets, int data = 2,
                   const char* exchange = "ring") {
  const auto result = batch_of(exchange_ms, buckets, data, exchange);
  return static_cast<double>(result.sums.makespan) * 1e-6;
}

} // namespace

TEST_CASE("data replicas are proved right under every schedule and exchange",
          "[replicas]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto exchange =
    GENERATE("naive", "tree", "ring", "halving", "server", "zero1", "zero2", "zero3");
  for (const auto& entry : tiny::one_of_each_kind({4, 4}))
    for (const int data : data_sizes)
      for (const int stages : stage_counts) {
        const auto sch = *find_schedule(entry.name);
        if (sch.local_rule() || !validation_error(sch, {stages, 4, 3}).empty()
            || !tests::tries(30, {exchange, std::string{entry.name},
                                  std::to_string(data), std::to_string(stages)}))
          continue;
        check_proofs(
          replicated(tiny::training_of(sch, {stages, 4, 3}, clock), data, exchange));
      }
}

TEST_CASE("updates of several microbatches a replica are proved right", "[replicas]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  for (const auto& sch : {pipedream(2), pipedream(3), pipedream(3, true)})
    check_proofs(replicated(tiny::training_of(sch, {3, 4, 3}, clock), 2));
}

TEST_CASE("data replicas clip by one global norm, or one a stage", "[replicas]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto* const name = GENERATE("gpipe", "1f1b", "chimera", "2bw");
  const auto* const exchange = GENERATE("ring", "zero1", "zero2", "zero3");
  const auto scope = GENERATE(clip_scope::network, clip_scope::stage);
  auto plan =
    replicated(tiny::training_of(*find_schedule(name), {2, 4, 3}, clock), 2, exchange);
  plan.machine.links.inside = {.latency = 100'000, .bytes_per_second = 1e6};
  plan.work->optimizer.clip = 0.05;
  plan.work->optimizer.scope = scope;
  check_proofs(plan);
}

TEST_CASE("replicas of one pipeline lose and learn what the pipeline alone does",
          "[replicas]") {
  auto alone =
    tiny::training_of(*find_schedule("1f1b"), {2, 8, 4}, clock_kind::virtual_time);
  auto four =
    tiny::training_of(*find_schedule("1f1b"), {2, 2, 4}, clock_kind::virtual_time);
  four.mesh[axis::data] = 4;
  four.exchange = exchange_by("tree");
  four.work->batch = alone.work->batch;
  const auto a = perform(alone), b = perform(four);
  REQUIRE(a.loss.size() == b.loss.size());
  CHECK(a.loss_samples == b.loss_samples);
  CHECK(a.loss.front() == b.loss.front()); // the same samples in the same order
  for (std::size_t i = 0; i < a.loss.size(); ++i)
    CHECK(std::abs(a.loss[i] - b.loss[i]) < 1e-4);
}

TEST_CASE("an exchange by buckets hides behind the backward", "[replicas]") {
  // A ring of two sends half the gradients twice.
  CHECK(std::abs(makespan_ms(0, 1) - 30) < 1e-4); // a message is never empty
  CHECK(makespan_ms(12, 1) == 30 + 12);
  // Of 20 buckets each is sent when a twentieth of the backward has ended.
  const double hidden = 30 + 12 - makespan_ms(12, 20);
  CHECK(hidden >= 0.6 * 12);
}

TEST_CASE("messages of sums that a rank handles while it computes are counted",
          "[replicas]") {
  // Of every bucket each replica receives a chunk to add and a chunk that is summed.
  // Only messages of buckets that complete at the end come after the backward.
  const auto hidden = batch_of(12, 20);
  CHECK(hidden.summed == 2 * 2 * 20);
  CHECK(hidden.summed_at_work >= 2 * 2 * 18);
  const auto whole = batch_of(12, 1);
  CHECK(whole.summed == 2 * 2);
  CHECK(whole.summed_at_work == 0);
}

TEST_CASE("an exchange that is longer than the backward hides the backward",
          "[replicas]") {
  const double hidden = 30 + 40 - makespan_ms(40, 20);
  CHECK(hidden >= 0.6 * 20);
}

TEST_CASE("what ZeRO 2 and 3 send layer by layer hides behind passes", "[replicas]") {
  // Each of two replicas sends half of a layer in each collective. ZeRO 2 sums in the
  // backward and gathers at the update, where no computation can hide the gather.
  const double zero2 = makespan_ms(12, 20, 2, "zero2");
  CHECK(30 + 6 + 6 - zero2 >= 0.6 * 6);
  // ZeRO 3 gathers in the forward and in the backward, and sums in the backward.
  const double zero3 = makespan_ms(12, 20, 2, "zero3");
  CHECK(30 + 6 + 12 - zero3 >= 0.6 * (6 + 12));
  CAPTURE(zero2, zero3);
  CHECK(makespan_ms(12, 1, 2, "zero3") > zero3);
}

TEST_CASE("evaluations change no bits of data replicas", "[replicas]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  auto plan =
    replicated(tiny::training_of(*find_schedule("1f1b"), {2, 4, 4}, clock), 2);
  const auto without = perform(plan);
  std::vector<int> evaluated;
  plan.copies.evaluate_every = 2;
  const auto with =
    perform(plan, {.evaluate = [&](int batches, const std::vector<const float*>&) {
              evaluated.push_back(batches);
            }});
  CHECK(evaluated == std::vector{2, 4});
  CHECK((with.parameters == without.parameters));
}

TEST_CASE("a data replica that fails ends the run with its reason", "[replicas]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  auto plan =
    replicated(tiny::training_of(*find_schedule("1f1b"), {2, 4, 4}, clock), 3);
  plan.work->data = std::make_shared<tiny::brittle_data>(
    plan.work->data, 11, [] { throw std::runtime_error("sample 11 is gone"); });
  const auto result = perform(plan);
  CHECK(result.outcome == ending::failed);
  CHECK_THAT(result.failure, Catch::Matchers::ContainsSubstring("sample 1")
                               && Catch::Matchers::ContainsSubstring("is gone"));
}

TEST_CASE("a run that fails with gradients and activations on their way ends in order",
          "[replicas]") {
  auto plan = replicated(tiny::training_of(*find_schedule("pipedream"), {3, 4, 40},
                                           clock_kind::virtual_time),
                         3);
  plan.work->optimizer = {.name = "sgd", .rate = 1e10};
  plan.machine.links.inside = {.latency = 2'000'000};
  const auto result = perform(plan);
  CHECK(result.outcome == ending::failed);
  CHECK_THAT(result.failure, Catch::Matchers::ContainsSubstring("is not finite"));
}

TEST_CASE("a simulated exchange takes its latency, however few the bytes",
          "[replicas]") {
  auto plan =
    replicated(tiny::simulation(*find_schedule("gpipe"), {1, 1, 1}, 10, 20), 4, "ring");
  plan.machine.links.inside = {.latency = 50'000'000};
  CHECK(perform(plan).sums.makespan == 30'000'000 + 6 * 50'000'000);
}

TEST_CASE("a local rule refuses data replicas", "[replicas]") {
  const auto plan = replicated(tiny::simulation(ampnet(4, 1), {2, 4, 1}), 2);
  CHECK_THAT(validation_error(plan), Catch::Matchers::ContainsSubstring(
                                       "data replicas have no common updates"));
}

} // namespace troupe::replicas_test
