// SPDX-License-Identifier: BSD-3-Clause
// The memory that a plan needs, beside published formulas.

#include "plan/stage_layers.hpp"
#include "plan/stage_pools.hpp"
#include "tests/plan/tiny_plans.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdint>
#include <numeric>
#include <string>
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

} // namespace troupe::memory_needs_test
