// SPDX-License-Identifier: BSD-3-Clause
// Norms of gradients and learning rates that a run reports, beside the gradients that
// the run kept and the formula of the rate.

#include "actors/run/recorder.hpp"
#include "plan/sharding.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <cmath>
#include <numbers>
#include <vector>

namespace troupe::gradient_norms_test {

using Catch::Approx;

namespace {

constexpr double base_rate = 0.02, floor_of_rate = 0.25;
constexpr std::int64_t warmup = 13;

/// Warm-up counts samples with the update's own, the cosine counts those before.
double rate_at(std::int64_t first, std::int64_t last, std::int64_t total) {
  if (last <= warmup)
    return base_rate * static_cast<double>(last) / warmup;
  const double done =
    static_cast<double>(first - warmup) / static_cast<double>(total - warmup);
  return base_rate
         * (floor_of_rate
            + (1 - floor_of_rate)
                * (1 + std::cos(std::numbers::pi * std::clamp(done, 0.0, 1.0))) / 2);
}

double squares_of(const std::vector<std::vector<float>>& buckets) {
  double sum = 0;
  for (const auto& bucket : buckets)
    for (const double value : bucket)
      sum += value * value;
  return sum;
}

run_plan trained(const tiny::mesh_of_ranks& mesh, const schedule& sch) {
  auto plan = tiny::training_on(mesh, sch, {2, 4, 3}, clock_kind::virtual_time);
  plan.keep.versions = true;
  plan.work->optimizer.rate = base_rate;
  plan.work->optimizer.schedule = {
    .cosine = true, .warmup = warmup, .floor = floor_of_rate};
  return plan;
}

} // namespace

TEST_CASE("norms that a run reports are those of the gradients that it kept",
          "[norms]") {
  const auto& mesh = GENERATE(values<tiny::mesh_of_ranks>(
    {{},
     {.clips = true},
     {.data = 2, .exchange = "ring"},
     {.data = 2, .exchange = "server"},
     {.data = 2, .exchange = "zero1"},
     {.data = 2, .exchange = "zero3", .clips = true},
     {.tensor = 2},
     {.data = 2, .tensor = 2, .exchange = "zero2", .by_sequence = true},
     {.data = 2, .expert = 2, .experts = true},
     {.data = 2, .expert = 2, .exchange = "zero1", .experts = true, .clips = true}}));
  const auto& sch = GENERATE(
    from_range(std::vector{gpipe(), chimera(), two_bw(), pipedream(), pipedream(2)}));
  CAPTURE(mesh.text(), sch.name);
  const auto plan = trained(mesh, sch);
  const auto result = perform(plan);
  REQUIRE(result.outcome == ending::finished);
  REQUIRE(result.versions.size() == result.loss.size());
  REQUIRE(result.gradient_norms.size() == result.loss.size());
  REQUIRE(result.learning_rates.size() == result.loss.size());
  const auto total = result.loss_samples.back();
  std::int64_t first = 0;
  for (std::size_t u = 0; u < result.loss.size(); ++u) {
    CAPTURE(u);
    const auto last = result.loss_samples[u];
    const double expected = std::sqrt(squares_of(result.versions[u].gradients))
                            / static_cast<double>(last - first);
    REQUIRE(expected > 0);
    CHECK(result.gradient_norms[u] == Approx(expected).epsilon(1e-6));
    CHECK(result.learning_rates[u] == Approx(rate_at(first, last, total)));
    first = last;
  }
}

TEST_CASE("where no norm is known a run reports none", "[norms]") {
  auto plan = GENERATE(trained({}, ampnet(2, 2)),
                       trained({.data = 2, .exchange = "server:async"}, gpipe()));
  CHECK(norm_shards(plan).empty());
  const auto result = perform(plan);
  REQUIRE(result.outcome == ending::finished);
  CHECK(result.gradient_norms.empty());
  CHECK(result.learning_rates.empty());
}

TEST_CASE("a node and its leader agree which shards measure their gradients",
          "[norms]") {
  auto leader = trained({}, gpipe());
  leader.machine.processors = {{.gpu = 0}, {}};
  auto node = leader; // of the rank on the CPU; ranks of other nodes are not told
  node.machine.processors = {{}, {}};
  const position on_gpu{0, 0, 0, 0}, on_cpu{0, 0, 1, 0};
  CHECK(measures_gradient(leader, on_cpu));
  CHECK(measures_gradient(node, on_cpu));
  CHECK_FALSE(measures_gradient(leader, on_gpu));
  CHECK(norm_shards(leader).empty());
  update_log log{leader};
  for (const int version : {1, 2})
    CHECK(log.add({on_cpu, version, 2, 4.0, 0.5}).empty());
  CHECK(log.norms().empty());
  leader.work->optimizer.clip = 1;
  CHECK(measures_gradient(leader, on_gpu));
  CHECK(norm_shards(leader).size() == 2);
}

TEST_CASE("updates are reported in order when all their parts are there", "[norms]") {
  const auto plan = trained({.tensor = 2}, gpipe());
  update_log log{plan};
  const auto part = [](int version, int stage, int tensor, double squares) {
    return mail::update_part{.where = {0, 0, stage, tensor},
                             .version = version,
                             .samples = 2,
                             .squares = squares,
                             .rate = 0.5 * version};
  };
  for (const int stage : {0, 1})
    for (const int tensor : {0, 1})
      CHECK(log.add(part(2, stage, tensor, 9)).empty());
  CHECK(log.add(part(1, 0, 0, 1)).empty());
  CHECK(log.add(part(1, 0, 0, 1)).empty()); // a repetition
  CHECK(log.add(part(1, 1, 0, 2)).empty());
  CHECK(log.add(part(1, 1, 1, 3)).empty());
  CHECK(log.add(part(1, 0, 1, 10))
        == std::vector<update_so_far>{{2, 2, 0.5}, {4, 3, 1}});
  CHECK(log.add(part(1, 0, 1, 10)).empty()); // a repetition of a whole update
  for (const int stage : {0, 1}) {
    CHECK(log.add(part(3, stage, 0, 1)).empty());
    CHECK(log.add(part(3, stage, 1, 0)).size() == static_cast<std::size_t>(stage));
  }
  CHECK(log.norms() == std::vector<double>{2, 3, std::sqrt(2.0) / 2});
  CHECK(log.rates() == std::vector<double>{0.5, 1, 1.5});
}

} // namespace troupe::gradient_norms_test
