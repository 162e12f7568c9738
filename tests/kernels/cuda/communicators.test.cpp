// SPDX-License-Identifier: BSD-3-Clause
// Groups of simulated GPUs. A value sent by one member arrives at another, in the order
// of sends. Streams stall until then, and name the waiting members where a receive can
// never end.

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/join_group.hpp"
#include "kernels/processor.hpp"
#include "messaging/gpu_script.hpp"
#include "tests/kernels/cuda/gpu_array.hpp"
#include "tests/messaging/post_office.hpp"
#include "tests/random/wish.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace troupe::communicators_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using way = transfer::way;

namespace {

constexpr std::int64_t n = 24;

/// Members of a group, each on a GPU and with an array of its own.
class group_of {
public:
  /// \param on streams of others that members use too; empty: each has a stream of its
  /// own
  explicit group_of(int members, const std::vector<stream*>& on = {}) {
    const auto id = new_group();
    std::vector<std::thread> threads;
    for (int m = 0; m < members; ++m) {
      if (on.empty())
        own_.emplace_back(new stream{stream_on({m % 4}, 1, precision::fp32)});
      streams_.push_back(on.empty() ? own_.back().get()
                                    : on[static_cast<std::size_t>(m)]);
      arrays_.push_back(std::make_unique<gpu::array<float>>(
        "array " + std::to_string(m), std::vector<float>(n, static_cast<float>(m + 1)),
        gpu::use::updated));
    }
    ends_.resize(streams_.size());
    for (int m = 0; m < members; ++m)
      threads.emplace_back([this, &id, m, members] {
        end(m) =
          join_group(*streams_[static_cast<std::size_t>(m)], {id, m, members}, no_);
      });
    for (auto& thread : threads)
      thread.join();
  }

  std::unique_ptr<communicator>& end(int member) {
    return ends_[static_cast<std::size_t>(member)];
  }
  stream& on(int member) { return *streams_[static_cast<std::size_t>(member)]; }
  float* array(int member) { return arrays_[static_cast<std::size_t>(member)]->data(); }
  std::vector<float> values(int member) {
    return arrays_[static_cast<std::size_t>(member)]->values();
  }

  void exchange(int member, std::vector<transfer> all) { end(member)->exchange(all); }

  void wait() {
    for (auto* const one : streams_)
      one->wait();
  }

private:
  std::vector<std::unique_ptr<stream>> own_; // destroyed last
  std::vector<std::unique_ptr<gpu::array<float>>> arrays_;
  std::atomic<bool> no_ = false;
  std::vector<stream*> streams_;
  std::vector<std::unique_ptr<communicator>> ends_;
};

/// Transfers of a whole array.
transfer give(float* from, int to, std::int64_t count = n) {
  return {way::send, to, from, count};
}
transfer take(float* to, int from, std::int64_t count = n) {
  return {way::receive, from, to, count};
}

bool all_are(const std::vector<float>& values, float what) {
  return std::ranges::all_of(values, [what](float v) { return v == what; });
}

} // namespace

TEST_CASE("what a member gives arrives, however late the other comes to it",
          "[communicators]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    on_host::seed_streams(seed);
    group_of two{2};
    two.exchange(0, {give(two.array(0), 1)});
    two.exchange(1, {take(two.array(1), 0)});
    two.wait();
    CHECK(all_are(two.values(1), 1));
  }
}

TEST_CASE("of two that are given the first arrives first", "[communicators]") {
  group_of two{2};
  auto* const to = two.array(1);
  two.exchange(0, {give(two.array(0), 1, 8)});
  cuda::arrays::add(two.array(0) + 8, 8, two.array(0), two.on(0).gpu()->handle()); // 2
  two.exchange(0, {give(two.array(0), 1, 8)});
  two.exchange(1, {take(to, 0, 8)});
  two.exchange(1, {take(to + 8, 0, 8)});
  two.wait();
  const auto values = two.values(1);
  CHECK(values[0] == 1);
  CHECK(values[8] == 2);
}

TEST_CASE("members that give each other in one exchange do not wait for each other",
          "[communicators]") {
  group_of two{2};
  const gpu::array<float> first{"first", n}, second{"second", n};
  two.exchange(0, {give(two.array(0), 1), take(first.data(), 1)});
  two.exchange(1, {give(two.array(1), 0), take(second.data(), 0)});
  two.wait();
  CHECK(all_are(first.values(), 2));
  CHECK(all_are(second.values(), 1));
}

TEST_CASE("members that each give before they take are told who waits for whom",
          "[communicators]") {
  group_of two{2};
  for (const int m : {0, 1}) {
    two.exchange(m, {give(two.array(m), 1 - m)});
    two.exchange(m, {take(two.array(m), 1 - m)});
  }
  CHECK_THROWS_MATCHES(
    two.on(0).wait(), std::runtime_error,
    MessageMatches(ContainsSubstring("streams wait for each other: call 0 of member ")
                   && ContainsSubstring("waits for member 1")
                   && ContainsSubstring("waits for member 0")));
  CHECK_THROWS(two.on(1).wait());
}

TEST_CASE("collectives of two groups that share streams must come in one order",
          "[communicators]") {
  group_of one{2};
  group_of other{2, {&one.on(0), &one.on(1)}};
  const auto swap = [](group_of& in, int member) {
    in.exchange(member, {member == 0 ? give(in.array(0), 1) : take(in.array(1), 0)});
  };
  SECTION("which they do") {
    for (auto* const in : {&one, &other})
      for (const int m : {0, 1})
        swap(*in, m);
    one.wait();
    CHECK(all_are(one.values(1), 1));
    CHECK(all_are(other.values(1), 1));
  }
  SECTION("or they are told of") {
    swap(one, 0);
    swap(other, 0);
    swap(other, 1);
    swap(one, 1);
    CHECK_THROWS_MATCHES(
      one.on(0).wait(), std::runtime_error,
      MessageMatches(ContainsSubstring("streams wait for each other: call 0 of member")
                     && ContainsSubstring("; call 0 of member")));
    CHECK_THROWS(one.on(1).wait());
  }
}

TEST_CASE("members that come to different transfers are told both", "[communicators]") {
  group_of two{2};
  two.exchange(0, {give(two.array(0), 1, 8)});
  two.exchange(1, {take(two.array(1), 0, 12)});
  CHECK_THROWS_MATCHES(
    two.on(1).wait(), std::runtime_error,
    MessageMatches(ContainsSubstring("call 0 of member 0 of group ")
                   && ContainsSubstring(" gives 8 values, and call 0 of member 1 of ")
                   && ContainsSubstring(" takes 12")));
}

TEST_CASE("a member that is ended waits for nobody", "[communicators]") {
  group_of two{2};
  two.exchange(0, {take(two.array(0), 1)});
  two.end(0)->abort();
  CHECK_NOTHROW(two.on(0).wait()); // as NCCL's stream does
  CHECK_THROWS_MATCHES(
    two.end(0)->check(), std::runtime_error,
    MessageMatches(ContainsSubstring("the group of GPUs has been ended")));
  CHECK_NOTHROW(two.end(1)->check());
}

TEST_CASE("who waits for members that do not come can be told to go on",
          "[communicators]") {
  auto on = stream_on({0}, 1, precision::fp32);
  std::atomic<bool> ended = false;
  std::thread other{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    ended = true;
  }};
  CHECK_THROWS(join_group(on, {new_group(), 0, 2}, ended));
  other.join();
}

#ifndef TROUPE_SANITIZED // where accesses are watched

TEST_CASE("an exchange of what another stream still writes is told of",
          "[communicators]") {
  group_of two{2};
  auto writer = stream_on({0}, 1, precision::fp32);
  const int whose = GENERATE(0, 1);
  INFO("member " << whose);
  cuda::arrays::clear(n, two.array(whose), writer.gpu()->handle());
  two.exchange(0, {give(two.array(0), 1)});
  two.exchange(1, {take(two.array(1), 0)});
  std::string told;
  for (auto* const one : {&two.on(0), &two.on(1), &writer})
    try {
      one->wait();
    } catch (const std::runtime_error& race) {
      told += race.what();
    }
  CHECK(told.find("race on 'array " + std::to_string(whose) + "'") != told.npos);
  CHECK(told.find("call 0 of member " + std::to_string(whose)) != told.npos);
}

#endif

namespace {

/// All orders that work in place.
std::vector<collective_order> orders_in_place() {
  std::vector<collective_order> result;
  for (const auto& one : collective_catalog())
    if (one.in_place)
      result.push_back(one);
  return result;
}

} // namespace

TEST_CASE("groups of GPUs make the bits of every collective, and none ever hangs",
          "[communicators]") {
  const auto order = GENERATE(from_range(orders_in_place()));
  const int members = GENERATE(2, 3, 4, 5, 7);
  const std::int64_t values = GENERATE(1, 37);
  const bool has_root = order.operation < collective_operation::all_reduce;
  const int root = has_root ? members - 1 : 0;
  for (std::uint64_t seed = 1; seed <= gpu::seeds(); ++seed) {
    INFO(name_of(order.operation)
         << ' ' << order.name << ", " << members << " members, " << values
         << " values, seed " << seed);
    on_host::seed_streams(seed);
    const auto given = post_office::random_arrays(members, values, 7);
    const auto where = chunks::even(values, order.chunks(members));
    const auto right =
      plain_collective(order, post_office::views_of(given), where, root);
    std::vector<std::unique_ptr<gpu::array<float>>> arrays;
    std::vector<std::unique_ptr<memory_account>> accounts;
    std::vector<std::unique_ptr<pool>> pools;
    group_of all{members};
    for (int m = 0; m < members; ++m) {
      const auto i = static_cast<std::size_t>(m);
      const gpu_script script{even_part(order, m, members, values, root)};
      arrays.push_back(
        std::make_unique<gpu::array<float>>("an array", given[i], gpu::use::updated));
      accounts.push_back(std::make_unique<memory_account>(memory_of({0})));
      pools.push_back(std::make_unique<pool>("slots", script.slots().buffers,
                                             script.slots().values, *accounts[i]));
      auto* const data = arrays[i]->data();
      script.launch({data, data, pools[i].get()}, *all.end(m), all.on(m));
    }
    REQUIRE_NOTHROW(all.wait());
    for (int m = 0; m < members; ++m) {
      const auto i = static_cast<std::size_t>(m);
      const auto made = arrays[i]->values();
      const auto begin = made.begin() + right[i].begin;
      CHECK(std::vector<float>(begin, begin + std::ssize(right[i].values))
            == right[i].values);
    }
  }
}

} // namespace troupe::communicators_test
