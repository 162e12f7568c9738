// SPDX-License-Identifier: BSD-3-Clause
// The order in which runs request nodes: of several runs that want the same nodes, each
// gets all nodes in the end.

#include "actors/nodes/node_order.hpp"

#include "tests/dice.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace troupe::node_order_test {

namespace {

/// Runs that request the same nodes, on a simulated clock of the test. A node takes
/// part in one run at a time; other runs wait in the order in which requests came.
/// Requests, answers and ends take random times each.
class contention {
public:
  contention(int runs, int nodes, dice& random) : random_(random) {
    for (int i = 0; i < nodes; ++i)
      nodes_.push_back({.identity = {static_cast<std::uint64_t>(random.number(0, 2)),
                                     static_cast<std::uint64_t>(i)}});
    std::vector<int> spelled;
    for (int i = 0; i < nodes; ++i)
      spelled.push_back(i);
    for (int r = 0; r < runs; ++r) {
      for (std::size_t i = spelled.size(); i > 1; --i)
        std::swap(
          spelled[i - 1],
          spelled[static_cast<std::size_t>(random.number(0, static_cast<int>(i) - 1))]);
      std::vector<node_identity> known; // in this run's numbering
      for (const int n : spelled)
        known.push_back(at(n).identity);
      auto& run = runs_.emplace_back();
      for (const int number : order_of(known))
        run.push_back(spelled[static_cast<std::size_t>(number) - 1]);
      later([this, r] { ask(r, 0); });
    }
  }

  /// Returns the number of runs that had all nodes before the last event.
  int played() {
    while (!events_.empty()) {
      auto next = events_.extract(events_.begin());
      now_ = next.key();
      next.mapped()();
    }
    return played_;
  }

private:
  struct node {
    node_identity identity;
    bool plays = false;
    std::deque<std::function<void()>> line; // answers to waiting runs
  };

  node& at(int n) { return nodes_[static_cast<std::size_t>(n)]; }

  void later(std::function<void()> what) {
    events_.emplace(now_ + random_.number(1, 20), std::move(what));
  }

  /// A run's request reaches the next node of its order.
  void ask(int run, std::size_t place) {
    auto& order = runs_[static_cast<std::size_t>(run)];
    if (place == order.size()) {
      ++played_;
      for (const int n : order)
        later([this, n] { release(n); });
      return;
    }
    auto& to = at(order[place]);
    auto yes = [this, run, place] { later([=, this] { ask(run, place + 1); }); };
    if (std::exchange(to.plays, true))
      to.line.push_back(yes);
    else
      yes();
  }

  void release(int n) {
    auto& of = at(n);
    of.plays = !of.line.empty();
    if (!of.plays)
      return;
    of.line.front()();
    of.line.pop_front();
  }

  dice& random_;
  int now_ = 0, played_ = 0;
  std::multimap<int, std::function<void()>> events_;
  std::vector<node> nodes_;
  std::vector<std::vector<int>> runs_; // nodes, in the order of requests
};

} // namespace

TEST_CASE("of runs that want the same nodes each gets all in the end", "[nodes]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    dice random{seed};
    const int runs = random.number(2, 4), nodes = random.number(2, 6);
    INFO("seed " << seed << ": " << runs << " runs, " << nodes << " nodes");
    CHECK(contention{runs, nodes, random}.played() == runs);
  }
}

TEST_CASE("two addresses of one node are found", "[nodes]") {
  const node_identity a{1, 2}, b{1, 3}, c{0, 9};
  CHECK_FALSE(twins_among({a, b, c}));
  CHECK(twins_among({a, b, a, c}) == std::pair{1, 3});
  CHECK(order_of({a, b, c}) == std::vector{3, 1, 2});
  CHECK(new_identity() != new_identity());
}

} // namespace troupe::node_order_test
