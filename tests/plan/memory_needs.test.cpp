// SPDX-License-Identifier: BSD-3-Clause
// The memory that a plan needs, beside published formulas.

#include "plan/memory_check.hpp"
#include "plan/stage_layers.hpp"
#include "plan/stage_pools.hpp"
#include "tests/plan/tiny_plans.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace troupe::memory_needs_test {

namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

/// Parameters of GPT-2 with an untied head without bias: Radford et al., "Language
/// Models are Unsupervised Multitask Learners" (2019).
std::int64_t parameters_of_gpt(std::int64_t layers, std::int64_t width,
                               std::int64_t length, std::int64_t words) {
  const auto block = 2 * 2 * width                   // two layer norms
                     + 3 * width * width + 3 * width // queries, keys and values
                     + width * width + width         // projection
                     + 4 * width * width + 4 * width // feed-forward, out
                     + 4 * width * width + width;    // and in
  return (words + length) * width + layers * block + 2 * width + words * width;
}

} // namespace

// Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
// Models" (2020), figure 1, in fp32: N data replicas hold all parameters, gradients and
// two moments of Adam; stage 1 divides the moments by N, stage 2 also the gradients,
// and stage 3 also the parameters.
TEST_CASE("64 replicas hold the shares of ZeRO", "[memory_needs]") {
  constexpr int replicas = 64;
  constexpr std::int64_t width = 64, layers = 4, length = 4, words = 12;
  const auto stage = GENERATE(0, 1, 2, 3);
  auto plan = tiny::training_of(one_f_one_b(), {1, 2, 1}, clock_kind::virtual_time,
                                {"gpt", layers, width, 2, length, words}, 2 * replicas);
  plan.mesh[axis::data] = replicas;
  plan.exchange = find_exchange(stage == 0 ? "ring" : "zero" + std::to_string(stage));
  plan.work->optimizer = {.kind = optimizer_kind::adamw, .rate = 0.01};
  const auto whole = parameters_of_gpt(layers, width, length, words);
  const auto buckets = std::ssize(buckets_of(plan, {0, 0, 0}));
  std::int64_t parameters = 0, gradients = 0, moments = 0;
  for (int d = 0; d < replicas; ++d) {
    const auto pools = pools_of(plan, {d, 0, 0});
    // A share of a bucket is at most one value larger than the mean.
    if (stage >= 3)
      CHECK(sum_of(pools.buckets) <= whole / replicas + buckets + 1);
    if (stage >= 2)
      CHECK(sum_of(pools.gradients) <= whole / replicas + buckets + 1);
    parameters += sum_of(pools.buckets);
    gradients += sum_of(pools.gradients);
    moments += pools.optimizer;
  }
  CHECK(parameters == (stage >= 3 ? whole : replicas * whole));
  CHECK(gradients == (stage >= 2 ? whole : replicas * whole));
  // Moments are padded to cache lines, an array at a time.
  const auto exact = 2 * (stage >= 1 ? whole : replicas * whole);
  CHECK(moments >= exact);
  CHECK(moments <= exact + exact / 5);
}

TEST_CASE("actors of both directions and of all buckets count", "[memory_needs]") {
  const auto bytes = [](const schedule& sch, int data, int buckets,
                        const std::string& exchange = "ring") {
    auto plan = tiny::simulation(sch, {4, 8});
    plan.mesh[axis::data] = data;
    plan.exchange = find_exchange(exchange);
    plan.sizes.buckets = buckets;
    return bytes_of_actors(plan);
  };
  CHECK(bytes(gpipe(), 1, 9) == bytes(gpipe(), 1, 1)); // no bucket is exchanged
  CHECK(bytes(gpipe(), 2, 9) - bytes(gpipe(), 2, 1) == 2 * 4 * 8 * 500);
  CHECK(bytes(chimera(), 1, 9) - bytes(chimera(), 1, 1) == 2 * 4 * 8 * 500);
  CHECK(bytes(chimera(), 1, 1) >= 2 * 4 * 20'000);
  CHECK(bytes(gpipe(), 3, 1, "server:async") - bytes(gpipe(), 3, 1) == 3 * 4 * 3 * 200);
  const auto of_training = [](const tiny::mesh_of_ranks& mesh, const schedule& sch) {
    const auto plan = tiny::training_on(mesh, sch, {2, 4, 1}, clock_kind::real);
    auto alone = tiny::simulation(sch, {2, 4, 1});
    alone.mesh = plan.mesh;
    alone.exchange = plan.exchange;
    alone.sizes.buckets = 0;
    std::int64_t buckets = 0;
    for (int d = 0; d < mesh.data; ++d)
      for (int t = 0; t < mesh.tensor; ++t)
        for (int stage = 0; stage < 2; ++stage)
          buckets += std::ssize(buckets_of(plan, {d, 0, stage, t}));
    return std::pair{bytes_of_actors(plan) - bytes_of_actors(alone), buckets};
  };
  for (const auto& mesh :
       std::vector<tiny::mesh_of_ranks>{{.data = 2},
                                        {.data = 2, .tensor = 2},
                                        {.data = 4, .expert = 2, .experts = true}}) {
    INFO(mesh.text());
    const auto [more, buckets] = of_training(mesh, gpipe());
    CHECK(more == buckets * 6'000);
  }
  const auto [of_layers, layers] = of_training({}, gpipe());
  CHECK(of_layers == layers * 2'000);
  const auto [of_directions, count] = of_training({}, chimera());
  CHECK(of_directions == 2 * count * 6'000);
}

// Growth of resident memory on x86-64 with g++ 12, less the program's 5 MB and tensors.
TEST_CASE("actors take no more memory than is counted", "[memory_needs]") {
  struct measurement {
    schedule sch;
    int stages, data, buckets;
    std::int64_t bytes;
  };
  for (const auto& [sch, stages, data, buckets, bytes] :
       std::vector<measurement>{{gpipe(), 1000, 1, 1, 11'900'000},
                                {chimera(), 1000, 1, 1, 19'600'000},
                                {gpipe(), 500, 2, 100, 19'400'000},
                                {chimera(), 200, 4, 100, 23'400'000}}) {
    auto plan = tiny::simulation(sch, {stages, 2});
    plan.mesh[axis::data] = data;
    plan.exchange = find_exchange("ring");
    plan.sizes.buckets = buckets;
    INFO(sch.name << ", " << stages << " stages");
    CHECK(bytes_of_actors(plan) >= bytes);
  }
  for (const auto& [sch, stages, data, layers, bytes] :
       std::vector<measurement>{{gpipe(), 1, 1, 4000, 5'800'000},
                                {gpipe(), 1, 2, 4000, 20'000'000},
                                {gpipe(), 10, 8, 1000, 32'600'000},
                                {chimera(), 10, 1, 1000, 4'200'000}}) {
    auto plan = tiny::training_of(sch, {stages, 2}, clock_kind::virtual_time,
                                  {"mlp", layers, 1, 1, 1, 2});
    plan.mesh[axis::data] = data;
    plan.exchange = find_exchange("ring");
    INFO(sch.name << ", " << layers << " layers");
    CHECK(bytes_of_actors(plan) >= bytes);
  }
}

} // namespace troupe::memory_needs_test
