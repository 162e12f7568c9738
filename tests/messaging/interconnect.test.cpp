// SPDX-License-Identifier: BSD-3-Clause
// The time of messages between ranks in virtual time: ports, machines, links.

#include "messaging/interconnect.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

namespace troupe::interconnect_test {

namespace {

/// A message that a test sends, and the time of arrival.
struct trial_message {
  nanoseconds sent;
  int from;
  int to;
  double bytes;
  nanoseconds arrived = -1;
};

/// Sends all messages over a network, messages of one instant in order.
std::vector<nanoseconds> arrivals(const machine_model& how, int ranks,
                                  std::vector<trial_message> all) {
  virtual_clock clock;
  interconnect links{clock, how, ranks};
  for (auto& m : all)
    clock.call_at(m.sent, [&] {
      links.send(m.from, m.to, m.bytes, [&] { m.arrived = clock.now(); });
    });
  while (clock.step())
    continue;
  std::vector<nanoseconds> result;
  for (const auto& m : all)
    result.push_back(m.arrived);
  return result;
}

using times = std::vector<nanoseconds>;

/// A byte takes a nanosecond, and 700 more until it arrives.
const machine_model flat{.inside = {700, 1e9}};

/// Two ranks on each machine; a byte takes 1 ns inside and 10 ns between.
const machine_model pairs_of_ranks{
  .ranks_each = 2, .inside = {5, 1e9}, .between = {1000, 1e8}};

} // namespace

TEST_CASE("a message alone takes latency + bytes / bandwidth", "[interconnect]") {
  CHECK(arrivals(flat, 2, {{50, 0, 1, 300}}) == times{50 + 700 + 300});
  CHECK(arrivals(flat, 2, {{0, 0, 1, 0}}) == times{700});
  CHECK(arrivals({.inside = {700, 0}}, 2, {{0, 0, 1, 1e12}}) == times{700});
  CHECK(arrivals(flat, 2, {{9, 1, 1, 300}}) == times{9}); // within a rank
  CHECK(arrivals(pairs_of_ranks, 4, {{0, 0, 1, 300}}) == times{5 + 300});
  CHECK(arrivals(pairs_of_ranks, 4, {{0, 0, 2, 300}}) == times{1000 + 3000});
}

TEST_CASE("a port sends one message after another, to whomever", "[interconnect]") {
  CHECK(arrivals(flat, 3, {{0, 0, 1, 100}, {0, 0, 2, 50}, {1000, 0, 1, 10}})
        == times{800, 850, 1710});
}

TEST_CASE("a port receives one message after another, in the order of first bytes",
          "[interconnect]") {
  // Both first bytes arrive at 700: the lowest sender goes first.
  CHECK(arrivals(flat, 3, {{0, 2, 0, 100}, {0, 1, 0, 50}}) == times{850, 750});
  // Rank 1's message arrives 20 later.
  CHECK(arrivals(flat, 3, {{0, 2, 0, 100}, {20, 1, 0, 50}}) == times{800, 850});
  // An idle port of a distant rank does not wait for a nearer rank.
  CHECK(arrivals(flat, 3, {{0, 2, 0, 100}, {900, 1, 0, 50}}) == times{800, 1650});
}

TEST_CASE("a port sends and receives at once", "[interconnect]") {
  CHECK(arrivals(flat, 2, {{0, 0, 1, 400}, {0, 1, 0, 400}}) == times{1100, 1100});
}

TEST_CASE("messages cut through: nothing waits for a last byte", "[interconnect]") {
  // Rank 0's port is free when rank 1's has only begun to receive.
  CHECK(arrivals(flat, 4, {{0, 0, 1, 100}, {100, 0, 2, 100}, {0, 3, 2, 100}})
        == times{800, 900, 800});
}

TEST_CASE("a machine's ranks share its port", "[interconnect]") {
  // 300 bytes take 3,000 on the port; inside, and from a third machine, no message
  // waits.
  const std::vector<trial_message> all{
    {0, 0, 2, 300}, {0, 1, 3, 300}, {0, 2, 3, 300}, {0, 4, 0, 300}};
  CHECK(arrivals(pairs_of_ranks, 6, all) == times{4000, 7000, 305, 4000});
  // Two machines send to one: the port receives one after the other, the lowest first.
  CHECK(arrivals(pairs_of_ranks, 6, {{0, 4, 0, 300}, {0, 2, 1, 300}})
        == times{7000, 4000});
}

TEST_CASE("pairs of machines may have links of their own", "[interconnect]") {
  auto how = pairs_of_ranks;
  how.pairs[{0, 2}] = {50'000, 1e7}; // ten times as slow
  // The slow link occupies the port of machine 0 no longer than the fast link does.
  CHECK(arrivals(how, 6, {{0, 0, 4, 300}, {0, 1, 2, 300}})
        == times{50'000 + 30'000, 3000 + 4000});
  // Two messages over the slow link follow one another there.
  CHECK(arrivals(how, 6, {{0, 0, 4, 300}, {0, 5, 0, 300}, {0, 1, 5, 300}})
        == times{80'000, 80'000, 110'000});
  // faster than others: the port is as fast as this link
  how.pairs[{0, 2}] = {1000, 1e9};
  CHECK(arrivals(how, 6, {{0, 0, 4, 300}, {0, 1, 2, 300}})
        == times{1300, 300 + 1000 + 3000});
}

TEST_CASE("a port is as slow as the slowest that a message passes", "[interconnect]") {
  // Between machines at 1 ns a byte, inside 10: the sender's port is the bottleneck.
  const machine_model how{.ranks_each = 1, .inside = {0, 1e8}, .between = {7, 1e9}};
  CHECK(arrivals(how, 2, {{0, 0, 1, 100}, {0, 0, 1, 100}}) == times{1007, 2007});
}

// The definition, written without events: ports serve in the order of first bytes.
TEST_CASE("random messages arrive when the definition says", "[interconnect]") {
  const auto seed = GENERATE(range(0, 20));
  std::mt19937 random{static_cast<unsigned>(seed)};
  const int ranks = 5;
  std::vector<trial_message> all;
  nanoseconds now = 0;
  for (int i = 0; i < 60; ++i) {
    now += static_cast<nanoseconds>(random() % 3) * 200;
    const int from = static_cast<int>(random() % ranks);
    const int to = (from + 1 + static_cast<int>(random() % (ranks - 1))) % ranks;
    all.push_back({now, from, to, static_cast<double>(random() % 6) * 100});
  }
  struct passing {
    nanoseconds first; // byte, at the receiver
    int from;
    std::size_t index;
  };
  std::vector<passing> order;
  std::vector<nanoseconds> out(ranks), in(ranks);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& m = all[i];
    auto& port = out[static_cast<std::size_t>(m.from)];
    const auto begin = std::max(port, m.sent);
    port = begin + static_cast<nanoseconds>(m.bytes);
    order.push_back({begin + 700, m.from, i});
  }
  std::ranges::sort(order, {}, [](const passing& p) {
    return std::tuple{p.first, p.from, p.index};
  });
  times expected(all.size());
  for (const auto& [first, from, i] : order) {
    auto& port = in[static_cast<std::size_t>(all[i].to)];
    port = std::max(port, first) + static_cast<nanoseconds>(all[i].bytes);
    expected[i] = port;
  }
  CHECK(arrivals(flat, ranks, all) == expected);
}

} // namespace troupe::interconnect_test
