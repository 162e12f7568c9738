// SPDX-License-Identifier: BSD-3-Clause
// The holder of each share of parameters and states, as the plan alone says.

#include "actors/plan/run_plan.hpp"

#include "tests/actors/meshes.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <vector>

namespace troupe::run_plan_test {

TEST_CASE("the data replicas that sum a bucket share it out, and others have nothing "
          "of it",
          "[run_plan]") {
  // Even data replicas host experts 0 and 1, odd ones host 2 and 3.
  const auto plan =
    tiny::training_on({.data = 6, .expert = 2, .exchange = "zero1", .experts = true},
                      gpipe(), {1, 4, 1}, clock_kind::virtual_time);
  std::vector<std::vector<int>> owners(plan.work->whole.experts.size());
  for (int d = 0; d < plan.data; ++d) {
    const auto buckets = plan.layer_buckets({d, 0, 0});
    const auto shares = plan.shares_of({d, 0, 0});
    REQUIRE(shares.size() == buckets.size());
    std::int64_t held = 0;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const bool is_expert = buckets[b].expert >= 0;
      CHECK(shares[b].index == (is_expert ? d / 2 : d));
      CHECK(shares[b].count == (is_expert ? 3 : 6));
      held += shares[b].held(buckets[b].owner->bucket());
      if (is_expert)
        owners[static_cast<std::size_t>(buckets[b].expert)].push_back(d);
    }
    CHECK(plan.state_values_of({d, 0, 0}) == held);
  }
  const std::vector<int> even{0, 2, 4}, odd{1, 3, 5};
  for (std::size_t e = 0; e < owners.size(); ++e)
    CHECK(owners[e] == (e % 4 < 2 ? even : odd));
}

} // namespace troupe::run_plan_test
