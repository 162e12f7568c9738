// SPDX-License-Identifier: BSD-3-Clause
// The arrays of tensor shards after a meeting, in any order of messages.

#include "actors/meetings/tensor_meeting.hpp"

#include "plan/exchange_sizes.hpp"
#include "tests/actors/meeting_office.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <memory>

namespace troupe::tensor_meeting_test {

using tiny::meeting_office;
using array = std::vector<float>;
using kind = shard_collective<float>::kind;

namespace {

/// A tensor shard that comes to collectives of several actions, one after another.
struct shard {
  shard(const run_plan& plan, int t,
        std::vector<std::vector<shard_collective<float>>> all)
    : actions(std::move(all)) {
    payload_bound most;
    for (auto& action : actions)
      for (auto& operation : action) {
        const auto one = copies_of_shards(plan, {0, 0, 1, t}, operation);
        most = {std::max(most.buffers, one.buffers), std::max(most.values, one.values)};
        arrays.emplace_back(static_cast<std::size_t>(operation.values));
      }
    payloads =
      std::make_unique<pool>("a test's payloads", most.buffers, most.values, memory);
    meets.emplace(plan, position{0, 0, 1, t}, payloads.get());
    for (std::size_t i = 0; auto& action : actions)
      for (auto& operation : action)
        operation.array = arrays[i++].data();
  }

  std::vector<meeting_office::step> steps() {
    std::vector<meeting_office::step> result;
    for (std::size_t a = 0; a < actions.size(); ++a)
      for (std::size_t i = 0; i < actions[a].size(); ++i)
        result.push_back({[this] { return meets->is_done(0); },
                          [this, a, i] {
                            if (i == 0)
                              meets->expect(actions[a]);
                            return meets->begin(static_cast<int>(i));
                          }});
    result.push_back(
      {[this] { return meets->is_done(0); }, [] { return meeting_messages{}; }});
    return result;
  }

  std::vector<std::vector<shard_collective<float>>> actions;
  std::vector<array> arrays;
  memory_account memory;
  std::unique_ptr<pool> payloads;
  std::optional<tensor_meeting> meets;
};

} // namespace

TEST_CASE("tensor shards sum, gather and scatter as is written down here",
          "[meetings][tensor]") {
  const int count = GENERATE(2, 3, 4, 5);
  const unsigned seed = GENERATE(range(0U, 12U));
  auto plan = tiny::simulation(one_f_one_b(), {2, 4});
  plan.mesh[axis::tensor] = count;
  const auto n = static_cast<std::size_t>(count);
  const std::vector<kind> kinds{kind::sum, kind::gather, kind::scatter, kind::sum};
  const std::vector<std::vector<shard_collective<float>>> actions{
    {{kinds[0], nullptr, 13}},
    {{kinds[1], nullptr, 4 * count}},
    {{kinds[2], nullptr, 3 * count}, {kinds[3], nullptr, 2 * count}}};
  std::vector<std::unique_ptr<shard>> shards;
  std::vector<std::vector<array>> before(kinds.size());
  std::mt19937 chance{seed};
  for (int t = 0; t < count; ++t) {
    shards.push_back(std::make_unique<shard>(plan, t, actions));
    for (std::size_t i = 0; auto& of : shards.back()->arrays) {
      before[i].push_back(
        tiny::random_numbers(chance, static_cast<std::int64_t>(of.size())));
      std::ranges::copy(before[i++].back(), of.begin());
    }
  }
  meeting_office office{seed % 2 == 1};
  for (int t = 0; auto& s : shards)
    office.join({role::stage, {0, 0, 1, t++}}, meeting_kind::shards, *s->meets,
                s->steps());
  office.run(seed);
  CHECK((office.sums > 0) == (seed % 2 == 1));
  for (std::size_t t = 0; t < n; ++t) {
    const auto& after = shards[t]->arrays;
    CHECK(after[0] == tiny::sum_of(before[0]));
    for (std::size_t c = 0; c < n; ++c)
      CHECK(tiny::part_of(after[1], c, n) == tiny::part_of(before[1][c], c, n));
    CHECK(tiny::part_of(after[2], t, n)
          == tiny::part_of(tiny::sum_of(before[2]), t, n));
    CHECK(after[3] == tiny::sum_of(before[3]));
  }
}

TEST_CASE("a tensor shard waits for one that has not come", "[meetings][tensor]") {
  auto plan = tiny::simulation(one_f_one_b(), {2, 4});
  plan.mesh[axis::tensor] = 2;
  tensor_meeting first{plan, {0, 0, 1, 0}, nullptr},
    second{plan, {0, 0, 1, 1}, nullptr};
  for (auto* shard : {&first, &second})
    shard->expect({{kind::sum, nullptr, 8}});
  CHECK(first.is_done(0));
  CHECK_FALSE(first.waits_for());
  auto out = first.begin(0);
  CHECK_FALSE(first.is_done(0));
  REQUIRE(first.waits_for());
  CHECK(first.waits_for()->input == "a part of the array");
  CHECK(first.waits_for()->peer == "stage 1 (tensor shard 1)");
  REQUIRE(out.size() == 1);
  CHECK(out[0].to == performer{role::stage, {0, 0, 1, 1}});
  CHECK(out[0].kind == traffic::tensor);
  CHECK(out[0].bytes == 32);
  auto back = second.begin(0);
  second.receive(std::move(out[0]));
  CHECK(second.is_done(0));
  first.receive(std::move(back[0]));
  CHECK(first.is_done(0));
  CHECK_FALSE(first.waits_for());
}

} // namespace troupe::tensor_meeting_test
