// SPDX-License-Identifier: BSD-3-Clause
// The devices and memory of the ranks that are here.

#include "actors/run/run_resources.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <numeric>

namespace troupe::equipment_test {

namespace {

/// The resources of some ranks, and the objects that these resources need.
struct equipped_ranks {
  equipped_ranks(const run_plan& plan, const std::vector<int>& here)
    : watch(plan, wall), all(plan, clock, watch, here) {
    // nop
  }

  std::int64_t reserved() const {
    std::int64_t sum = 0;
    for (const auto& rank : all.ranks())
      if (rank)
        sum += rank->memory.total().reserved();
    return sum;
  }

  wall_clock wall;
  virtual_clock clock;
  run_monitor watch;
  run_resources all;
};

const std::vector<tiny::mesh_of_ranks> meshes{
  {},
  {.clips = true},
  {.data = 2, .exchange = "zero1", .clips = true},
  {.data = 2, .exchange = "zero3"},
  {.data = 2, .exchange = "server"},
  {.data = 2, .exchange = "hogwild"},
  {.data = 2, .tensor = 2, .exchange = "zero2"},
  {.data = 2, .expert = 2, .experts = true},
};

} // namespace

TEST_CASE("half of the ranks have their own memory, and both halves what a run needs",
          "[equipment]") {
  const auto& mesh = GENERATE(from_range(meshes));
  const auto sch = GENERATE(one_f_one_b(), chimera(), two_bw());
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto plan = tiny::training_on(mesh, sch, {4, 4, 2}, clock);
  INFO(mesh.text() << " under " << sch.name);
  REQUIRE(validation_error(plan).empty());
  const auto needed = bytes_needed(plan);
  const bool every_second = GENERATE(false, true);
  std::int64_t reserved = 0;
  std::vector<std::int64_t> apart(needed.size()); // more where neighbours are elsewhere
  for (const int half : {0, 1}) {
    std::vector<int> here;
    for (int rank = 0; rank < plan.ranks(); ++rank)
      if ((every_second ? rank % 2 : rank / (plan.ranks() / 2)) == half)
        here.push_back(rank);
    const equipped_ranks some{plan, here};
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      const bool is_here = std::ranges::count(here, rank) > 0;
      REQUIRE((some.all.ranks()[r] != nullptr) == is_here);
      // A stage whose lower neighbour is elsewhere makes gradients in buffers of its
      // own.
      for (const auto& where : plan.hosted_by(rank))
        if (const position lower{where.data, where.direction, where.stage - 1,
                                 where.tensor};
            is_here && where.stage > 0
            && std::ranges::count(here, plan.rank_of(lower)) == 0)
          apart[r] += boundary_bytes(plan, lower);
      if (is_here)
        CHECK(some.all.ranks()[r]->memory.total().reserved() == needed[r] + apart[r]);
      for (const auto& where : plan.hosted_by(rank)) {
        CHECK((some.all.work_of(where).passes != nullptr) == is_here);
        const auto& streams = some.all.optimizer_of(where).streams;
        const auto first = plan.rank_of({where.data, 0, where.stage, where.tensor});
        REQUIRE(streams.empty() == (std::ranges::count(here, first) == 0));
        if (!streams.empty())
          CHECK(streams[static_cast<std::size_t>(where.direction)]
                == (is_here ? &some.all.rank_of_stage(where).main_stream : nullptr));
      }
    }
    CHECK(some.all.late_allocations() == 0);
    reserved += some.reserved();
  }
  CHECK(
    reserved
    == std::accumulate(apart.begin(), apart.end(),
                       std::accumulate(needed.begin(), needed.end(), std::int64_t{0})));
}

TEST_CASE("experts stand where their ranks are, and nowhere else", "[equipment]") {
  const auto plan =
    tiny::training_on({.data = 2, .expert = 2, .experts = true}, one_f_one_b(),
                      {2, 4, 1}, clock_kind::virtual_time);
  const equipped_ranks all{plan, all_ranks(plan)};
  CHECK(all.all.experts().size() == plan.work->whole.experts.size());
  for (const auto& one : all.all.experts())
    CHECK(one.work != nullptr);
  const equipped_ranks second{plan, {2, 3}}; // data replica 1
  CHECK(second.all.experts().size() == plan.work->whole.experts.size() / 2);
  for (const auto& one : second.all.experts())
    CHECK(one.host.data == 1);
}

TEST_CASE("memory taken after the start is counted", "[equipment]") {
  const auto plan =
    tiny::training_on({}, one_f_one_b(), {2, 2, 1}, clock_kind::virtual_time);
  const equipped_ranks all{plan, all_ranks(plan)};
  const tensor_memory more{16,
                           all.all.ranks()[1]->memory.account(memory_use::activations)};
  CHECK(all.all.late_allocations() == 1);
}

TEST_CASE("a slow data replica's devices take as many times as long", "[equipment]") {
  auto plan = tiny::simulation(one_f_one_b(), {2, 2});
  plan.mesh[axis::data] = 2;
  plan.exchange = find_exchange("ring");
  plan.machine.slowdowns = {1, 2.5};
  equipped_ranks all{plan, all_ranks(plan)};
  std::vector<nanoseconds> ends;
  for (const auto& rank : all.all.ranks())
    rank->computer->enqueue({.kind = static_cast<int>(op::forward)},
                            [&](const work_end& e) { ends.push_back(e.end); });
  while (all.clock.step())
    continue;
  CHECK(ends == std::vector<nanoseconds>{1'000'000, 1'000'000, 2'500'000, 2'500'000});
}

} // namespace troupe::equipment_test
