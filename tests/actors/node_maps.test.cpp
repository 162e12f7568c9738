// SPDX-License-Identifier: BSD-3-Clause
// The node of each rank, and maps that are refused.

#include "actors/nodes/node_maps.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace troupe::node_places_test {

using Catch::Matchers::ContainsSubstring;

namespace {

run_plan on(const tiny::mesh_of_ranks& mesh, const schedule& sch, int stages) {
  return tiny::training_on(mesh, sch, {stages, 4, 1}, clock_kind::real);
}

} // namespace

TEST_CASE("shards of a tensor and neighbours of a pipeline stay together", "[nodes]") {
  CHECK(default_node_map(on({}, one_f_one_b(), 4), 2) == std::vector{1, 1, 2, 2});
  CHECK(default_node_map(on({.tensor = 2}, one_f_one_b(), 2), 2)
        == std::vector{1, 1, 2, 2});
  CHECK(default_node_map(on({.data = 2}, one_f_one_b(), 2), 2)
        == std::vector{1, 1, 2, 2});
  CHECK(default_node_map(on({}, one_f_one_b(), 3), 2) == std::vector{1, 1, 2});
}

TEST_CASE("both ranks of a stage of two directions stand on one node", "[nodes]") {
  const auto plan = on({}, chimera(), 4);
  CHECK(default_node_map(plan, 2) == std::vector{1, 2, 2, 1});
  CHECK(node_map_error(plan, {1, 2, 2, 1}, 2).empty());
  CHECK_THAT(node_map_error(plan, {1, 1, 2, 2}, 2),
             ContainsSubstring("share an optimizer shard"));
}

TEST_CASE("all ranks of a stage of several pairs stand on one node", "[nodes]") {
  // Stage 0 is first on ranks 0 and 4, and in the other direction on ranks 7 and 3.
  const auto plan = on({}, chimera({.pairs = 2}), 8);
  const std::vector<int> places{1, 2, 2, 1, 1, 2, 2, 1};
  CHECK(default_node_map(plan, 2) == places);
  CHECK(node_map_error(plan, places, 2).empty());
  // Right for the first pair alone.
  CHECK_THAT(node_map_error(plan, {1, 1, 2, 2, 2, 2, 1, 1}, 2),
             ContainsSubstring("chimera's directions of stage 0"));
}

TEST_CASE("what nodes cannot play is refused with what is allowed", "[nodes]") {
  const auto plan = on({}, one_f_one_b(), 2);
  CHECK(node_map_error(plan, {1, 2}, 2).empty());
  CHECK_THAT(node_map_error(plan, {1, 1}, 2),
             ContainsSubstring("node 2 of 2 has none of the run's 2 ranks"));
  CHECK_THAT(node_map_error(plan, {1, 2, 2}, 2), ContainsSubstring("the run has 2"));
  CHECK_THAT(node_map_error(plan, {1, 3}, 1), ContainsSubstring("nodes 1 to 1"));
  CHECK_THAT(
    node_map_error(on({.data = 2, .exchange = "hogwild"}, one_f_one_b(), 1), {1, 2}, 2),
    ContainsSubstring("hogwild needs memory that all data replicas share"));
  auto simulated = plan;
  simulated.machine.clock = clock_kind::virtual_time;
  CHECK_THAT(node_map_error(simulated, {1, 2}, 2),
             ContainsSubstring("has one process"));
}

} // namespace troupe::node_places_test
