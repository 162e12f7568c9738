// SPDX-License-Identifier: BSD-3-Clause
// The buckets of data replicas after an exchange, in any order of messages.

#include "actors/meetings/bucket_meeting.hpp"

#include "plan/exchange_sizes.hpp"
#include "plan/layout.hpp"
#include "plan/replica_rules.hpp"
#include "plan/stage_buckets.hpp"
#include "tests/actors/meeting_office.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <algorithm>
#include <memory>

namespace troupe::bucket_meeting_test {

using tiny::meeting_office;
using array = std::vector<float>;

namespace {

/// A data replica that exchanges the buckets of three updates, the last bucket first.
struct bucket_member {
  bucket_member(const run_plan& plan, position at, exchange_step step,
                std::vector<std::vector<array>> all)
    : pools(std::make_shared<exchange_pools>(plan, at, step, memory)),
      updates(std::move(all)),
      meets(plan, at, step, pools),
      where(at),
      one_by_one(step == exchange_step::sum) {
    CHECK(memory.reserved() == 4 * exchanged_values(plan, where, step));
  }

  std::vector<meeting_office::step> steps() {
    std::vector<meeting_office::step> result;
    for (auto& buckets : updates) {
      for (int b = meets.buckets() - 1; b >= 0; --b)
        result.push_back({{}, [this, b, &buckets] {
                            meets.expect(b,
                                         buckets[static_cast<std::size_t>(b)].data());
                            return one_by_one ? meets.begin(b) : meeting_messages{};
                          }});
      if (!one_by_one)
        result.push_back(
          {{}, [this] { return meets.begin(bucket_meeting::all_buckets); }});
      result.push_back({[this] { return meets.is_done(0); },
                        [this] {
                          meets.next_update();
                          return meeting_messages{};
                        }});
    }
    return result;
  }

  memory_account memory;
  std::shared_ptr<exchange_pools> pools;
  /// For each update the arrays of all buckets.
  std::vector<std::vector<array>> updates;
  bucket_meeting meets;
  position where;
  bool one_by_one;
};

/// Makes all data replicas of a stage exchange three updates of random buckets.
struct exchanged_buckets {
  exchanged_buckets(const run_plan& plan, exchange_step step, unsigned seed) {
    std::mt19937 chance{seed};
    meeting_office office{seed % 2 == 1};
    for (int d = 0; d < plan.mesh[axis::data]; ++d) {
      const position where{d, 0, 0};
      std::vector<std::vector<array>> all(3);
      for (auto& update : all)
        for (const auto values : buckets_of(plan, where))
          update.push_back(tiny::random_numbers(chance, values));
      before.push_back(all);
      members.push_back(
        std::make_unique<bucket_member>(plan, where, step, std::move(all)));
      office.join({role::optimizer_shard, where},
                  step == exchange_step::sum ? meeting_kind::sums
                                             : meeting_kind::gathers,
                  members.back()->meets, members.back()->steps());
    }
    office.run(seed);
    CHECK((office.sums > 0) == (seed % 2 == 1 && step == exchange_step::sum));
  }

  /// A bucket of an update in each of some data replicas, before the exchange.
  std::vector<array> of(const std::vector<std::size_t>& replicas, std::size_t update,
                        std::size_t bucket) const {
    std::vector<array> result;
    for (const auto d : replicas)
      result.push_back(before[d][update][bucket]);
    return result;
  }

  std::vector<std::vector<std::vector<array>>> before; // data replica, update, bucket
  std::vector<std::unique_ptr<bucket_member>> members;
};

std::vector<std::size_t> all_of(int data) {
  std::vector<std::size_t> result;
  for (int d = 0; d < data; ++d)
    result.push_back(static_cast<std::size_t>(d));
  return result;
}

} // namespace

TEST_CASE("data replicas sum every bucket of every update", "[meetings][buckets]") {
  const auto* exchange = GENERATE("ring", "tree", "halving", "naive", "zero1");
  const int data = GENERATE(2, 3, 4);
  const unsigned seed = GENERATE(range(0U, 8U));
  const auto plan = tiny::replicas(exchange, data, 3, 11);
  const exchanged_buckets e{plan, exchange_step::sum, seed};
  const auto n = e.members.size();
  for (std::size_t u = 0; u < 3; ++u)
    for (std::size_t b = 0; b < 3; ++b) {
      const auto sum = tiny::sum_of(e.of(all_of(data), u, b));
      for (std::size_t d = 0; d < n; ++d) {
        const auto& after = e.members[d]->updates[u][b];
        if (shares_out(plan, shared_out::optimizer_state)) // only the share is needed
          CHECK(tiny::part_of(after, d, n) == tiny::part_of(sum, d, n));
        else
          CHECK(after == sum);
      }
    }
}

TEST_CASE("data replicas gather what each has made of every bucket",
          "[meetings][buckets]") {
  const int data = GENERATE(2, 3, 4);
  const unsigned seed = GENERATE(range(0U, 8U));
  const auto plan = tiny::replicas("zero1", data, 3, 11);
  const exchanged_buckets e{plan, exchange_step::gather, seed};
  const auto n = e.members.size();
  for (std::size_t u = 0; u < 3; ++u)
    for (std::size_t b = 0; b < 3; ++b)
      for (std::size_t d = 0; d < n; ++d)
        for (std::size_t from = 0; from < n; ++from)
          CHECK(tiny::part_of(e.members[d]->updates[u][b], from, n)
                == tiny::part_of(e.before[from][u][b], from, n));
}

TEST_CASE("data replicas that spread experts sum each expert with those that have it",
          "[meetings][buckets]") {
  const unsigned seed = GENERATE(range(0U, 4U));
  const auto plan = tiny::training_on({.data = 4, .expert = 2, .experts = true},
                                      one_f_one_b(), {1, 4}, clock_kind::virtual_time);
  const exchanged_buckets e{plan, exchange_step::sum, seed};
  for (std::size_t d = 0; d < 4; ++d) {
    const auto buckets = layer_buckets(plan, {static_cast<int>(d), 0, 0});
    REQUIRE(std::ranges::count(buckets, -1, &layer_bucket::expert)
            < static_cast<std::ptrdiff_t>(buckets.size()));
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const auto with =
        buckets[b].expert >= 0 ? std::vector<std::size_t>{d % 2, d % 2 + 2} : all_of(4);
      CHECK(e.members[d]->updates[2][b] == tiny::sum_of(e.of(with, 2, b)));
    }
  }
}

TEST_CASE("an update's buckets are over together, and it says whose are missing",
          "[meetings][buckets]") {
  const auto plan = tiny::replicas("ring", 2, 2, 4);
  bucket_meeting first{plan, {0, 0, 0}, exchange_step::sum, nullptr},
    second{plan, {1, 0, 0}, exchange_step::sum, nullptr};
  // a meeting that has not begun is not over
  CHECK_FALSE(first.is_done(bucket_meeting::all_buckets));
  CHECK_FALSE(first.waits_for());
  meeting_office office;
  const auto begins = [](bucket_meeting& m, int bucket) {
    return meeting_office::step{{}, [&m, bucket] { return m.begin(bucket); }};
  };
  office.join({role::optimizer_shard, {0, 0, 0}}, meeting_kind::sums, first,
              {begins(first, 1), begins(first, 0)});
  office.join({role::optimizer_shard, {1, 0, 0}}, meeting_kind::sums, second,
              {begins(second, 1)});
  office.run(0);
  CHECK_FALSE(first.is_done(bucket_meeting::all_buckets));
  REQUIRE(first.waits_for());
  CHECK(first.waits_for()->input == "the gradients of data replica 1");
  CHECK(first.waits_for()->peer == "optimizer of stage 0 (data replica 1)");
  CHECK_FALSE(second.is_done(bucket_meeting::all_buckets)); // bucket 0 has not begun
  CHECK_FALSE(second.waits_for());
}

TEST_CASE("an update's buckets are not over before the last sum is",
          "[meetings][buckets]") {
  const auto plan = tiny::replicas("tree", 2, 2, 4);
  bucket_meeting root{plan, {0, 0, 0}, exchange_step::sum, nullptr},
    leaf{plan, {1, 0, 0}, exchange_step::sum, nullptr};
  std::vector<requested_sum> asked;
  root.yield_sums([&](requested_sum s) { asked.push_back(std::move(s)); });
  for (const int b : {1, 0}) {
    root.begin(b);
    for (auto& letter : leaf.begin(b))
      CHECK(root.receive(std::move(letter)).empty());
  }
  REQUIRE(asked.size() == 2);
  CHECK((asked[0].meeting == meeting_kind::sums && asked[0].sum.values == 4));
  CHECK(root.waits_for()->input == "the end of its sum");
  CHECK(root.waits_for()->peer.empty());
  const auto end = [&](const requested_sum& s) {
    return root.receive({{}, s.meeting, mail::sum_over{s.number}});
  };
  CHECK(end(asked[0]).size() == 1); // the sum, down the tree
  CHECK_FALSE(root.is_done(0));
  CHECK(end(asked[1]).size() == 1);
  CHECK(root.is_done(0));
  CHECK_FALSE(root.waits_for());
}

TEST_CASE("sums travel as gradients to optimizer shards, versions as parameters",
          "[meetings][buckets]") {
  const auto plan = tiny::replicas("zero1", 2, 1, 6);
  bucket_meeting sums{plan, {0, 0, 0}, exchange_step::sum, nullptr},
    gathers{plan, {0, 0, 0}, exchange_step::gather, nullptr};
  const auto sum = sums.begin(0)[0],
             gather = gathers.begin(bucket_meeting::all_buckets)[0];
  for (const auto* one : {&sum, &gather}) {
    CHECK(one->to == performer{role::optimizer_shard, {1, 0, 0}});
    CHECK(one->bytes == 12); // half of the sum
  }
  CHECK(sum.kind == traffic::gradients);
  CHECK(sum.meeting == meeting_kind::sums);
  CHECK(gather.kind == traffic::parameters);
  CHECK(gather.meeting == meeting_kind::gathers);
}

TEST_CASE("buckets that GPUs sum come in one order, whichever is complete first",
          "[meetings][buckets]") {
  const auto plan = tiny::replicas("ring", 2, 3, 4);
  gpu_group group{};
  bucket_meeting sums{plan, {0, 0, 0}, exchange_step::sum, nullptr};
  sums.exchange_by([&](meeting_kind, int) { return &group; },
                   [](const requested_sum&) {});
  const auto buckets_of = [](const meeting_messages& all) {
    std::vector<int> result;
    for (const auto& one : all)
      result.push_back(std::get<collective_message>(one.body).instance);
    return result;
  };
  CHECK(buckets_of(sums.begin(1)).empty());
  CHECK(buckets_of(sums.begin(2)) == std::vector{2, 1});
  CHECK(buckets_of(sums.begin(0)) == std::vector{0});
}

TEST_CASE("an exchange that has failed fails who waits for it", "[meetings]") {
  const auto plan = tiny::replicas("ring", 2, 1, 4);
  bucket_meeting sums{plan, {0, 0, 0}, exchange_step::sum, nullptr};
  const auto why = std::make_exception_ptr(std::runtime_error{"lost"});
  CHECK_THROWS_WITH(sums.receive({{}, meeting_kind::sums, mail::sum_over{0, why}}),
                    "lost");
}

} // namespace troupe::bucket_meeting_test
