// SPDX-License-Identifier: BSD-3-Clause
// The memory that a plan needs, beside published formulas.

#include "tests/plan/tiny_plans.hpp"

#include "plan/stage_pools.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

namespace troupe::memory_needs_test {

namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

} // namespace

// Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
// Models" (2020), table 1, without mixed precision: parameters, gradients and K moments
// of each value, divided by the data replicas from the stage of ZeRO on that shards
// the array.
TEST_CASE("stages hold the shares of ZeRO on 64 replicas", "[memory_needs]") {
  constexpr int replicas = 64;
  const auto stage = GENERATE(0, 1, 2, 3);
  auto plan = tiny::training_on(
    {.data = replicas,
     .exchange = stage == 0 ? "ring" : "zero" + std::to_string(stage)},
    one_f_one_b(), {1, 2, 1}, clock_kind::virtual_time);
  plan.work->optimizer = {.kind = optimizer_kind::adamw, .rate = 0.01};
  const auto pools = pools_of(plan, {0, 0, 0});
  const auto whole = sum_of(plan.buckets_of({0, 0, 0}));
  // Each bucket is divided alone, and rounded up to whole cache lines.
  const auto share_of = [&](bool is_shared, int arrays) {
    return static_cast<double>(arrays * whole) / (is_shared ? replicas : 1);
  };
  const auto buckets = static_cast<double>(plan.buckets_of({0, 0, 0}).size());
  const auto is_near = [&](std::int64_t values, double formula, int arrays) {
    constexpr double padding = 16; // values of a cache line
    return std::abs(static_cast<double>(values) - formula)
           <= arrays * buckets * padding;
  };
  CHECK(is_near(sum_of(pools.buckets), share_of(stage >= 3, 1), 1));
  CHECK(is_near(sum_of(pools.gradients), share_of(stage >= 2, 1), 1));
  CHECK(is_near(pools.optimizer, share_of(stage >= 1, 2), 2));
}

} // namespace troupe::memory_needs_test
