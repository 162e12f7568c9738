// SPDX-License-Identifier: BSD-3-Clause
// The published numbers of schedules whose microbatches run through the ranks in two
// directions.

#include "schedules/catalog/catalog.hpp"
#include "tests/schedules/laid_out.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>

namespace troupe::bidirectional_test {

using namespace troupe::laid_out;

TEST_CASE("chimera takes the published time and memory", "[reference]") {
  const auto holds = [](shape dims, int f, int b, int makespan, int idle) {
    const auto run = simulated(chimera(), dims, f, b);
    CHECK(run.makespan == makespan);
    for (const auto rank_idle : run.idle)
      CHECK(rank_idle == idle);
  };
  holds({4, 4}, 1, 1, 10, 2);
  holds({4, 8}, 1, 1, 18, 2);
  holds({8, 8}, 1, 1, 22, 6);
  holds({4, 4}, 1, 2, 16, 4);
  holds({8, 8}, 1, 2, 36, 12);
  holds({8, 16}, 1, 2, 66, 18);
  holds({16, 16}, 1, 2, 76, 28);
  CHECK(peak_activations(chimera(), {4, 4}) == std::vector{3, 4, 4, 3});
  CHECK(peak_activations(chimera(), {8, 8}) == std::vector{5, 6, 7, 8, 8, 7, 6, 5});
}

TEST_CASE("chimera holds no more than D microbatches a rank, however many there are",
          "[reference]") {
  const int d = GENERATE(2, 4, 6, 8, 16), n = GENERATE(2, 4, 6, 10, 16, 32, 64);
  for (const int peak : peak_activations(chimera(), {d, n}))
    CHECK(peak <= d);
}

// Section 3.5 of the paper: units of 2D microbatches close up, so that idle time does
// not grow with the number of units. Without forward doubling idle time grows. In slots
// as long as a backward D-2 would stay free. Of two forwards in one slot the first
// starts the neighbour's earlier.
TEST_CASE("chimera's doubled forwards leave as much idle time, however many units",
          "[reference]") {
  const int d = GENERATE(2, 4, 6, 8, 16), units = GENERATE(1, 2, 5);
  const shape dims{d, 2 * d * units};
  for (const int b : {1, 2}) {
    const auto run = simulated(chimera({.forward_doubling = true}), dims, 1, b);
    CHECK(run.makespan == dims.microbatches * (1 + b) + (d / 2 - 1) * (1 + b));
    CHECK(run.idle == all(d, (d / 2 - 1) * (1 + b)));
  }
  CHECK(simulated(chimera(), dims, 1, 2).idle.front() == (2 * units + 1) * (d - 2));
  std::vector<int> held;
  for (int rank = 0; rank < d; ++rank)
    held.push_back(3 * d / 2 + 1 + std::min(rank, d - 1 - rank));
  CHECK(peak_activations(chimera({.forward_doubling = true}), dims) == held);
}

TEST_CASE("chimera of several pairs takes the published time and memory",
          "[reference]") {
  const auto holds = [](int pairs, shape dims, int b, int makespan, int idle) {
    const auto run = simulated(chimera({.pairs = pairs}), dims, 1, b);
    CHECK(run.makespan == makespan);
    CHECK(run.idle == all(dims.stages, idle));
  };
  holds(2, {8, 8}, 1, 18, 2);
  holds(4, {8, 8}, 1, 16, 0);
  holds(2, {8, 16}, 1, 34, 2);
  holds(2, {8, 8}, 2, 28, 4);
  CHECK(peak_activations(chimera({.pairs = 2}), {8, 8})
        == std::vector{7, 8, 8, 7, 7, 8, 8, 7});
  CHECK(peak_activations(chimera({.pairs = 4}), {8, 8})
        == std::vector(std::size_t{8}, 8));
}

TEST_CASE("dualpipe takes the published time and memory", "[reference]") {
  const auto holds = [](int p, int m, int makespan, int idle) {
    const auto run = on_ranks(dualpipe(), p, m);
    CHECK(run.makespan == makespan);
    CHECK(run.idle == all(p, idle));
    CHECK(peak_activations(dualpipe(), {p, m})
          == std::vector(static_cast<std::size_t>(p), p + 1));
  };
  holds(4, 10, 32, 2);
  holds(8, 20, 66, 6);
  holds(8, 32, 102, 6);
  holds(16, 40, 134, 14);
  // DualPipeV on p ranks: (PP/2-1)(F&B + B - 3W), PP = 2p, of halves of a rank's share.
  const int p = GENERATE(1, 2, 4, 8), m = 2 * p + GENERATE(0, 1, 5);
  CHECK(on_ranks(dualpipev(), p, m).idle == all(p, (p - 1) * (3 + 2 - 3)));
  CHECK(peak_activations(dualpipev(), {2 * p, m})
        == std::vector(static_cast<std::size_t>(p), 2 * p + 1));
}

} // namespace troupe::bidirectional_test
