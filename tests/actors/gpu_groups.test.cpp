// Which ranks make groups whose GPUs exchange arrays: as pictures of small meshes say.

#include "actors/plan/gpu_groups.hpp"

#include "tests/actors/meshes.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

using namespace troupe;

namespace {

run_plan plan_with(const tiny::mesh_of_ranks& mesh,
                   const schedule& sch = one_f_one_b()) {
  return tiny::training_on(mesh, sch, {2, 4, 2}, clock_kind::real);
}

using ranks = std::vector<int>;

/// The ranks of each group of one kind of meeting.
std::vector<ranks> groups_of(const run_plan& plan, meeting_kind about) {
  std::vector<ranks> result;
  for (const auto& group : exchanging_groups(plan))
    if (group.about == about) {
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
  CHECK(exchanging_groups(plan).size() == 2);
}

TEST_CASE("with ZeRO 1 they gather in another", "[groups]") {
  const auto plan = plan_with({.data = 2, .exchange = "zero1"});
  CHECK(groups_of(plan, meeting_kind::sums) == all{{0, 2}, {1, 3}});
  CHECK(groups_of(plan, meeting_kind::gathers) == all{{0, 2}, {1, 3}});
}

TEST_CASE("with ZeRO 3 they do both layer by layer", "[groups]") {
  const auto plan = plan_with({.data = 2, .exchange = "zero3"});
  CHECK(groups_of(plan, meeting_kind::layers) == all{{0, 2}, {1, 3}});
  CHECK(exchanging_groups(plan).size() == 2);
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

TEST_CASE("without replicas and shards there is no group", "[groups]") {
  CHECK(exchanging_groups(plan_with({})).empty());
  CHECK(exchanging_groups(plan_with({.data = 2, .exchange = "hogwild"}, pipedream()))
          .empty());
}

TEST_CASE("only ranks on GPUs of their own make a group", "[groups]") {
  auto plan = plan_with({.data = 2, .exchange = "ring"});
  const auto on = [&plan](const std::vector<gpu_place>& places) {
    return groups_on_gpus(plan, places);
  };
  CHECK(on({{0, 0}, {0, 1}, {0, 2}, {0, 3}}) == ranks{0, 1});
  CHECK(on({{0, 0}, {0, 0}, {0, 1}, {0, 1}}) == ranks{0, 1}); // stages share theirs
  CHECK(on({{0, 0}, {0, 1}, {0, 0}, {0, 2}}) == ranks{1});
  CHECK(on({{1, 0}, {1, 0}, {2, 0}, {2, 0}}) == ranks{0, 1}); // of two nodes
  CHECK(on({{0, 0}, {0, processor::cpu}, {0, 2}, {0, 3}}) == ranks{0});
  plan.clock = clock_kind::virtual_time;
  CHECK(on({{0, 0}, {0, 1}, {0, 2}, {0, 3}}).empty());
}
