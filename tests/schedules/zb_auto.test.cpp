// SPDX-License-Identifier: BSD-3-Clause
// zb-auto compared with the catalog's other schedules of the same placement.

#include "schedules/catalog/catalog.hpp"
#include "tests/dice.hpp"
#include "tests/schedules/laid_out.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::zb_auto_test {

namespace {

#ifdef TROUPE_SANITIZED
constexpr unsigned tries = 60;
#else
constexpr unsigned tries = 360;
#endif

/// Costs, sizes and memory at random.
struct random_case {
  explicit random_case(unsigned seed) {
    dice d{seed};
    dims = {d.number(2, 6), d.number(2, 16), d.number(1, 4)};
    most_held = d.coin() ? 0 : d.number(1, 2 * dims.stages);
    const bool uneven = d.coin(), updates = d.coin();
    latency = d.coin() ? 0 : d.number(1, 6);
    for (int s = 0; s < (uneven ? dims.stages : 1); ++s)
      costs.push_back(
        {d.number(1, 9), d.number(1, 9), d.number(1, 9), updates ? d.number(1, 9) : 0});
  }

  int memory() const { return most_held > 0 ? most_held : dims.stages; }

  std::int64_t makespan(const schedule& sch) const {
    const auto ran = predict(
      sch, dims,
      [&](const action& a) -> std::int64_t {
        const auto& of =
          costs[costs.size() == 1 ? 0 : static_cast<std::size_t>(a.stage)];
        return a.op == op::forward           ? of.f
               : a.op == op::backward        ? of.i + of.w
               : a.op == op::input_gradient  ? of.i
               : a.op == op::weight_gradient ? of.w
                                             : of.u;
      },
      [&](const action&) { return latency; });
    std::int64_t result = 0;
    for (const auto& row : ran)
      result = std::max(result, row.back().end);
    return result;
  }

  shape dims;
  int most_held;
  std::int64_t latency;
  std::vector<split_costs> costs;
};

} // namespace

TEST_CASE("zb-auto is never slower than another schedule of its placement and memory",
          "[zb-auto]") {
  int compared = 0;
  for (unsigned seed = 0; seed < tries; ++seed) {
    const random_case some{seed};
    const auto found = zb_auto(some.costs, some.most_held, some.latency);
    CAPTURE(seed, some.dims.stages, some.dims.microbatches, some.dims.steps,
            some.latency, some.memory());
    CHECK(std::ranges::max(laid_out::peak_activations(found, some.dims))
          <= some.memory());
    const auto makespan = some.makespan(found);
    for (const char* name : {"naive", "gpipe", "1f1b", "zb-h1", "zb-h2"}) {
      const auto other = *find_schedule(name);
      if (std::ranges::max(laid_out::peak_activations(other, some.dims))
          > some.memory())
        continue;
      ++compared;
      INFO(name);
      CHECK(makespan <= some.makespan(other));
    }
  }
  CHECK(compared > static_cast<int>(2 * tries));
}

TEST_CASE(
  "zb-auto takes a schedule of the catalog only if its memory holds the schedule",
  "[zb-auto]") {
  const shape dims{4, 8};
  const laid_out::costs of{1, 2, 1, 1};
  // ZB-H2 has the fewest idle times, and its ranks hold 2P - 1 microbatches.
  CHECK(laid_out::peak_activations(zb_h2(), dims) == std::vector{7, 7, 7, 7});
  CHECK(laid_out::simulated(zb_h2(), dims, of).makespan == 27);
  CHECK(laid_out::simulated(zb_auto({{1, 1, 1}}, 7), dims, of).makespan == 27);
  for (const int held : {1, 2, 3}) {
    const auto found = zb_auto({{1, 1, 1}}, held);
    CHECK(std::ranges::max(laid_out::peak_activations(found, dims)) <= held);
    CHECK(laid_out::simulated(found, dims, of).makespan > 27);
  }
}

TEST_CASE("zb-auto is as fast as zb-h1 where its search is not", "[zb-auto]") {
  const shape dims{5, 12};
  const laid_out::costs of{6, 11, 7, 4};
  CHECK(laid_out::simulated(zb_h1(), dims, of).makespan == 240);
  CHECK(laid_out::simulated(zb_auto({{6, 7, 4}}), dims, of).makespan <= 240);
}

} // namespace troupe::zb_auto_test
