// SPDX-License-Identifier: BSD-3-Clause
// The ranks that make groups whose GPUs exchange arrays, as pictures of small meshes
// show.

#include "plan/gpu_groups.hpp"

#include "actors/nodes/gpus_of_nodes.hpp"
#include "plan/sharding.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::gpu_groups_test {

namespace {

run_plan plan_with(const tiny::mesh_of_ranks& mesh,
                   const schedule& sch = one_f_one_b()) {
  return tiny::training_on(mesh, sch, {2, 4, 2}, clock_kind::real);
}

using ranks = std::vector<int>;

/// The ranks of each group of one kind of meeting; without a kind: of each edge.
std::vector<ranks> groups_of(const run_plan& plan, std::optional<meeting_kind> about) {
  std::vector<ranks> result;
  for (const auto& group : exchanging_groups(plan))
    if (group.kind == about) {
      auto& members = result.emplace_back();
      for (const auto& where : group.members)
        members.push_back(plan.rank_of(where));
    }
  return result;
}

using all = std::vector<ranks>;

} // namespace

// Two stages: rank 0 and 1 are replica 0, ranks 2 and 3 replica 1.
TEST_CASE("data replicas of a stage sum in a group", "[groups]") {
  const auto plan = plan_with({.data = 2, .exchange = "ring"});
  CHECK(groups_of(plan, meeting_kind::sums) == all{{0, 2}, {1, 3}});
  CHECK(exchanging_groups(plan).size() == 2 + 4); // and edges
}

TEST_CASE("with ZeRO 1 they gather in another", "[groups]") {
  const auto plan = plan_with({.data = 2, .exchange = "zero1"});
  CHECK(groups_of(plan, meeting_kind::sums) == all{{0, 2}, {1, 3}});
  CHECK(groups_of(plan, meeting_kind::gathers) == all{{0, 2}, {1, 3}});
}

TEST_CASE("with ZeRO 3 they do both layer by layer", "[groups]") {
  const auto plan = plan_with({.data = 2, .exchange = "zero3"});
  CHECK(groups_of(plan, meeting_kind::layers) == all{{0, 2}, {1, 3}});
  CHECK(exchanging_groups(plan).size() == 2 + 4); // and edges
}

// Shards 0 and 1 of stage 0, of stage 1; then replica 1.
TEST_CASE("tensor shards have groups beside those of replicas", "[groups]") {
  const auto plan = plan_with({.data = 2, .tensor = 2, .exchange = "ring"});
  CHECK(groups_of(plan, meeting_kind::shards) == all{{0, 1}, {4, 5}, {2, 3}, {6, 7}});
  CHECK(groups_of(plan, meeting_kind::sums) == all{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
}

TEST_CASE("experts that replicas spread are summed by fewer", "[groups]") {
  const auto plan = plan_with({.data = 4, .expert = 2, .experts = true});
  const auto sums = groups_of(plan, meeting_kind::sums);
  CHECK(std::ranges::count(sums, ranks{0, 2, 4, 6}) == 1);
  CHECK(std::ranges::count(sums, ranks{0, 4}) == 1);
  CHECK(std::ranges::count(sums, ranks{2, 6}) == 1);
}

TEST_CASE("where each replica has its own experts nobody sums them", "[groups]") {
  const auto plan = plan_with({.data = 2, .expert = 2, .experts = true});
  CHECK(groups_of(plan, meeting_kind::sums) == all{{0, 2}, {1, 3}});
}

TEST_CASE("both directions of a schedule share the sums of a stage", "[groups]") {
  const auto plan = plan_with({.data = 2, .exchange = "ring"}, chimera());
  CHECK(groups_of(plan, meeting_kind::sums) == all{{0, 2}, {1, 3}});
}

TEST_CASE("without replicas and shards there are edges alone", "[groups]") {
  for (const auto& plan :
       {plan_with({}), plan_with({.data = 2, .exchange = "hogwild"}, pipedream())})
    CHECK(exchanging_groups(plan).size() == groups_of(plan, std::nullopt).size());
}

TEST_CASE("each two neighbours have an edge in each direction", "[groups]") {
  const auto edges_of = [](const tiny::mesh_of_ranks& mesh, const schedule& sch,
                           const shape& dims) {
    return groups_of(tiny::training_on(mesh, sch, dims, clock_kind::real),
                     std::nullopt);
  };
  CHECK(edges_of({}, one_f_one_b(), {3, 4, 2}) == all{{0, 1}, {1, 0}, {1, 2}, {2, 1}});
  CHECK(edges_of({.data = 2, .exchange = "ring"}, one_f_one_b(), {2, 4, 2})
        == all{{0, 1}, {1, 0}, {2, 3}, {3, 2}});
  CHECK(edges_of({.tensor = 2}, one_f_one_b(), {2, 4, 2})
        == all{{0, 2}, {2, 0}, {1, 3}, {3, 1}}); // shard to shard
  CHECK(edges_of({}, chimera(), {2, 4, 2})       // whose second pipeline goes down
        == all{{0, 1}, {1, 0}, {1, 0}, {0, 1}});
  CHECK(edges_of({}, one_f_one_b(), {1, 4, 2}).empty());
  auto plan = plan_with({});
  plan.has_relays = true; // a relay would not see these tensors
  CHECK(exchanging_groups(plan).empty());
}

TEST_CASE("an edge gives from its first member to its second", "[groups]") {
  for (const auto& group :
       exchanging_groups(plan_with({.data = 2, .tensor = 2, .exchange = "ring"})))
    if (group.is_channel()) {
      REQUIRE(group.members.size() == 2);
      auto taker = group.members.front();
      taker.stage = 1 - taker.stage;
      CHECK(group.members.back() == taker);
    }
}

TEST_CASE("only ranks on GPUs of their own make a group", "[groups]") {
  auto plan = plan_with({.data = 2, .exchange = "ring"});
  const auto on = [&plan](const std::vector<std::string>& gpus) {
    return groups_on_gpus(plan, gpus);
  };
  CHECK(on({"a", "b", "c", "d"}) == ranks{0, 1, 2, 3, 4, 5});
  CHECK(on({"a", "a", "b", "b"}) == ranks{0, 1}); // a replica's stages share one
  CHECK(on({"a", "b", "a", "c"}) == ranks{1, 2, 3, 4, 5});
  CHECK(on({"a", "", "c", "d"}) == ranks{0, 4, 5});
  CHECK(on({"", "", "", ""}).empty());
  plan.machine.clock = clock_kind::virtual_time;
  CHECK(on({"a", "b", "c", "d"}).empty());
}

TEST_CASE("nodes whose GPUs cannot be in groups leave out theirs alone", "[groups]") {
  const auto plan = plan_with({.data = 2, .tensor = 2, .exchange = "ring"});
  const std::vector<int> places{1, 1, 1, 1, 2, 2, 2, 2}; // one node for each replica
  std::vector<node_facts> nodes{{"a:1", {.gpus = {"0", "1", "2", "3"}}},
                                {"b:2", {.gpus = {"4", "5", "6", "7"}}}};
  const auto all = exchanging_groups(plan);
  const std::optional<meeting_kind> edge;
  using counts = std::map<std::optional<meeting_kind>, int>;
  const auto kinds = [&](const chosen_groups& chosen) {
    counts result;
    for (const int group : chosen.groups)
      ++result[all[static_cast<std::size_t>(group)].kind];
    return result;
  };
  const auto chosen = choose_groups(plan, places, nodes, false);
  CHECK(kinds(chosen)
        == counts{{meeting_kind::shards, 4}, {meeting_kind::sums, 4}, {edge, 8}});
  CHECK(chosen.exclusion.empty());
  SECTION("by TLS") {
    const auto encrypted = choose_groups(plan, places, nodes, true);
    CHECK(kinds(encrypted) == counts{{meeting_kind::shards, 4}, {edge, 8}});
    CHECK(encrypted.exclusion
          == "nodes reach each other by TLS, and NCCL does not encrypt");
  }
  SECTION("of a node without NCCL") {
    nodes[1].reported.ungrouped = "NCCL 2 is not installed";
    const auto less = choose_groups(plan, places, nodes, false);
    CHECK(kinds(less) == counts{{meeting_kind::shards, 2}, {edge, 4}});
    CHECK(less.exclusion == "node b:2: NCCL 2 is not installed");
  }
  SECTION("on the GPUs of one machine") {
    nodes[1].reported.gpus = nodes[0].reported.gpus;
    const auto less = choose_groups(plan, places, nodes, false);
    CHECK(kinds(less) == counts{{meeting_kind::shards, 4}, {edge, 8}});
    CHECK(less.exclusion.empty()); // NCCL has no such groups
  }
  SECTION("that says too little") {
    nodes[1].reported.gpus.clear();
    CHECK(kinds(choose_groups(plan, places, nodes, false))
          == counts{{meeting_kind::shards, 2}, {edge, 4}});
  }
}

TEST_CASE("a node refuses groups that it cannot be in", "[groups]") {
  auto plan = plan_with({.data = 2, .exchange = "ring"}); // groups {0, 2}, {1, 3}
  plan.machine.processors = {processor{0}, processor{}};
  const auto fault = [&](const std::vector<int>& groups, ranks here = {0, 1, 2, 3}) {
    return group_error(plan, here, groups);
  };
  const std::string none = "the leader's request names a group of GPUs twice, or a "
                           "group that does not exist",
                    not_here = "the leader's request names a group of GPUs, but two of "
                               "the group's ranks share a GPU, or a rank has no GPU";
  CHECK(fault({}).empty());
  CHECK(fault({6}) == none);
  CHECK(fault({-1}) == none);
  CHECK(fault({1, 1}, {0}) == none);
  CHECK(fault({1}) == not_here);      // rank 1 is on the CPU
  CHECK(fault({0}) == not_here);      // ranks 0 and 2 share a GPU
  CHECK(fault({0}, {0}) != not_here); // rank 2 is elsewhere
  CHECK(fault({0}, {1}).empty());     // needs no NCCL, as no member is here
}

} // namespace troupe::gpu_groups_test
