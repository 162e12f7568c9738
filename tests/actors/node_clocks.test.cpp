// SPDX-License-Identifier: BSD-3-Clause
// The offsets that a leader learns of node clocks, probe by probe.

#include "actors/nodes/node_registry.hpp"
#include "actors/nodes/receive_queue.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

namespace troupe::node_clocks_test {

using namespace std::chrono_literals;

namespace {

constexpr nanoseconds hour = 3'600'000'000'000;
constexpr nanoseconds delay = 5'000'000; // of a late answer

/// A node's control line, which keeps the times of the probes that the leader sends.
struct probed_line : control_line {
  using control_line::send;
  void send(control_frame what) override {
    const auto message = wire::decode_node_message(what.text).value();
    if (const auto* const probe = std::get_if<mail::clock_probe>(&message))
      probes.put(probe->leader_time);
  }
  void limit_unsent(std::size_t) override {}
  void close() override { probes.put(std::nullopt); }

  receive_queue<std::optional<nanoseconds>> probes;
};

/// Answers the probes of a line. Every second answer is late, with a clock that shows a
/// quarter of an hour more.
void answer(node_registry& nodes, int node, probed_line& line, nanoseconds ahead,
            bool late_first) {
  bool is_late = late_first;
  for (;;) {
    const auto asked = line.probes.take(10s);
    if (!asked || !*asked)
      return;
    while (is_late && wall_clock::steady() < **asked + delay)
      std::this_thread::yield();
    nodes.receive(
      node, mail::clock_probe{**asked, **asked + ahead + (is_late ? hour / 4 : 0)});
    is_late = !is_late;
  }
}

} // namespace

TEST_CASE("a time of the leader becomes that of the node's own clock", "[clocks]") {
  const nanoseconds ahead = GENERATE(3 * hour, -3 * hour);
  const bool late_first = GENERATE(true, false);
  const auto lines = {std::make_shared<probed_line>(), std::make_shared<probed_line>()};
  {
    node_registry nodes{{"node a (rank 0)", "node b (rank 1)"}, 10s, {}};
    std::vector<std::jthread> threads;
    int node = 0;
    for (const auto& line : lines) {
      nodes.add(++node, line);
      threads.emplace_back(answer, std::ref(nodes), node, std::ref(*line),
                           node == 1 ? ahead : 0, late_first);
    }
    nodes.probe_clocks();
    // A repeated answer changes nothing.
    nodes.receive(1, mail::clock_probe{wall_clock::steady(), 17 * hour});
    const auto start = wall_clock::steady();
    CHECK(nodes.time_on(1, start) <= start + ahead);
    CHECK(nodes.time_on(1, start) >= start + ahead - delay);
    CHECK(nodes.time_on(2, start) <= start);
    CHECK(nodes.time_on(2, start) >= start - delay);
    CHECK(nodes.clock_doubt() < 2 * delay);
    for (const auto& line : lines)
      line->close();
  }
}

} // namespace troupe::node_clocks_test
