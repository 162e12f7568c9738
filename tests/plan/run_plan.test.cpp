// SPDX-License-Identifier: BSD-3-Clause
// The holder of each share of parameters and states, and the indexes of stages and
// optimizer shards in lists of all.

#include "plan/run_plan.hpp"

#include "plan/mesh.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_indexing.hpp"
#include "tests/plan/tiny_plans.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
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
  for (int d = 0; d < plan.mesh[axis::data]; ++d) {
    const auto buckets = layer_buckets(plan, {d, 0, 0});
    const auto shares = shares_of(plan, {d, 0, 0});
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
    CHECK(state_values_of(plan, {d, 0, 0}) == held);
  }
  const std::vector<int> even{0, 2, 4}, odd{1, 3, 5};
  for (std::size_t e = 0; e < owners.size(); ++e)
    CHECK(owners[e] == (e % 4 < 2 ? even : odd));
}

TEST_CASE("stages stand pipeline by pipeline, shards by data replica and tensor shard",
          "[places]") {
  auto plan = tiny::simulation(GENERATE(one_f_one_b(), chimera()), {4, 4});
  plan.mesh[axis::data] = 3;
  plan.mesh[axis::tensor] = 2;
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

TEST_CASE("each stage of a data replica and tensor shard has a server with a device",
          "[places]") {
  const auto sch = GENERATE(one_f_one_b(), interleaved(3), chimera());
  const int stages = stages_on(sch.where, 4);
  auto plan = tiny::simulation(sch, {stages, 4});
  plan.mesh[axis::data] = 2;
  plan.mesh[axis::tensor] = 2;
  for (const char* exchange :
       {"ring", "hogwild", "server:async", "server:staleness=1"}) {
    INFO(sch.name << " with " << exchange);
    plan.exchange = find_exchange(exchange);
    const int servers = std::string_view{exchange}.starts_with("server")
                          ? static_cast<int>(stage_indexing{plan}.shards())
                          : 0;
    CHECK(plan.ranks() == 16);
    CHECK(device_count(plan, all_ranks(plan)) == 16 + servers);
    CHECK(device_count(plan, {0, 5}) == 2 + servers / 8); // two ranks of 16
    CHECK(device_count(plan, {}) == 0);
  }
}

TEST_CASE("ranks count along the last axis first, and groups differ along their axes",
          "[mesh]") {
  mesh_sizes sizes;
  sizes[axis::data] = 3;
  sizes[axis::expert] = 2;
  sizes[axis::pipe] = 4;
  sizes[axis::tensor] = 5;
  const rank_mesh ranks{sizes};
  REQUIRE(ranks.ranks() == 3 * 2 * 4 * 5);
  struct place {
    int data, expert, pipe, tensor;
  };
  std::vector<place> places;
  for (int d = 0; d < 3; ++d)
    for (int e = 0; e < 2; ++e)
      for (int p = 0; p < 4; ++p)
        for (int t = 0; t < 5; ++t)
          places.push_back({d, e, p, t});
  for (int rank = 0; rank < ranks.ranks(); ++rank) {
    const auto& at = places[static_cast<std::size_t>(rank)];
    CHECK(ranks.index(rank, axis::data) == at.data);
    CHECK(ranks.index(rank, axis::expert) == at.expert);
    CHECK(ranks.index(rank, axis::pipe) == at.pipe);
    CHECK(ranks.index(rank, axis::tensor) == at.tensor);
    std::vector<int> of_pipe, of_replicas;
    for (int other = 0; other < ranks.ranks(); ++other) {
      const auto& o = places[static_cast<std::size_t>(other)];
      if (o.data == at.data && o.expert == at.expert && o.tensor == at.tensor)
        of_pipe.push_back(other);
      if (o.pipe == at.pipe && o.tensor == at.tensor)
        of_replicas.push_back(other);
    }
    CHECK(ranks.group(rank, {axis::pipe}) == of_pipe);
    CHECK(ranks.group(rank, {axis::expert, axis::data}) == of_replicas);
    CHECK(ranks.group(rank, {axis::data}).size() == 3);
    for (const int other : ranks.group(rank, {axis::data})) {
      const auto& o = places[static_cast<std::size_t>(other)];
      CHECK(ranks.moved(rank, axis::data, o.data) == other);
      CHECK((o.expert == at.expert && o.pipe == at.pipe && o.tensor == at.tensor));
    }
  }
}

TEST_CASE("a plan's ranks have the positions that their stages have", "[mesh]") {
  auto plan = tiny::simulation(GENERATE(one_f_one_b(), chimera()), {4, 4});
  plan.mesh[axis::data] = 6;
  plan.mesh[axis::expert] = 3;
  plan.mesh[axis::tensor] = 2;
  const auto ranks = plan.ranks_by_axis();
  REQUIRE(ranks.ranks() == plan.ranks());
  for (const int rank : all_ranks(plan))
    for (const auto& where : plan.hosted_by(rank)) {
      CHECK(ranks.index(rank, axis::data) == where.data / 3);
      CHECK(ranks.index(rank, axis::expert) == where.data % 3);
      CHECK(ranks.index(rank, axis::tensor) == where.tensor);
      CHECK(plan.rank_of(where) == rank);
    }
}

} // namespace troupe::run_plan_test
