// SPDX-License-Identifier: BSD-3-Clause
// The indices of stages and optimizer shards in lists of all.

#include "actors/plan/stage_indexing.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace troupe::places_test {

TEST_CASE("stages stand pipeline by pipeline, shards by data replica and tensor shard",
          "[places]") {
  auto plan = tiny::simulation(GENERATE(one_f_one_b(), chimera()), {4, 4});
  plan.data = 3;
  plan.tensor = 2;
  const stage_indexing in{plan};
  const int directions = plan.sch.name == "chimera" ? 2 : 1;
  std::size_t stage = 0, shard = 0;
  int pipeline = 0;
  for (int d = 0; d < 3; ++d)
    for (int r = 0; r < directions; ++r)
      for (int t = 0; t < 2; ++t, ++pipeline)
        for (int s = 0; s < 4; ++s) {
          CHECK(in.index({d, r, s, t}) == stage++);
          CHECK(in.stage_at(pipeline, s) == position{d, r, s, t});
        }
  CHECK(in.pipelines() == pipeline);
  for (int d = 0; d < 3; ++d)
    for (int t = 0; t < 2; ++t)
      for (int s = 0; s < 4; ++s)
        CHECK(in.shard_index({d, 0, s, t}) == shard++);
  CHECK(in.shards() == shard);
  std::size_t called = 0;
  in.for_each_shard([&](position where) { CHECK(in.shard_index(where) == called++); });
  CHECK(called == shard);
}

} // namespace troupe::places_test
