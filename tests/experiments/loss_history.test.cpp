// SPDX-License-Identifier: BSD-3-Clause
// Losses of a training over all starts of a run: each loss once, wherever the run
// starts again.

#include "experiments/report/loss_history.hpp"

#include "tests/dice.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <cmath>

namespace troupe::loss_history_test {

namespace {

constexpr int batch = 12, apart = 100;

double loss_of(std::int64_t step) {
  return std::sin(static_cast<double>(step)) + 2;
}

/// Losses of a start that resumes after `before` steps, up to step `end`.
std::vector<loss_so_far> losses(std::int64_t before, std::int64_t end) {
  std::vector<loss_so_far> result;
  for (auto step = before + 1; step <= end; ++step)
    result.push_back({(step - before) * batch, loss_of(step)});
  return result;
}

} // namespace

TEST_CASE("a run that starts again has each loss once, as one that never did",
          "[losses]") {
  const auto seed = GENERATE(range(1U, 9U));
  dice roll{seed};
  const std::int64_t first = roll.number(0, 5), end = first + roll.number(20, 25'000);
  loss_history history{first * batch, apart};
  auto before = first, at = first, furthest = first;
  while (at < end) {
    const auto next = std::min<std::int64_t>(end, at + roll.number(1, 400));
    auto some = losses(before, next);
    some.erase(some.begin(), some.begin() + (at - before)); // reported already
    history.add(some);
    at = next;
    furthest = std::max(furthest, at);
    if (at == end || !roll.coin())
      continue;
    before = at = std::clamp<std::int64_t>(furthest - roll.number(0, apart), first, at);
    history.restart(before * batch);
  }
  const auto all = history.summary();
  INFO("seed " << seed << ": " << end - first << " steps");
  CHECK(all.missing == 0);
  REQUIRE(all.loss.size() == all.samples.size());
  CHECK(all.loss.size() <= most_entries);
  auto step = first; // by definition: means of so many losses
  for (std::size_t i = 0; i < all.loss.size(); ++i) {
    double sum = 0;
    int count = 0;
    for (; count < all.every && step < end; ++count)
      sum += loss_of(++step);
    REQUIRE(all.loss[i] == Catch::Approx(sum / count));
    REQUIRE(all.samples[i] == step * batch);
  }
  CHECK(step == end);
}

TEST_CASE("losses that no start has given are counted", "[losses]") {
  loss_history history{0, apart};
  history.add(losses(0, 10));
  history.restart(13 * batch); // others kept this step's state; its loss was lost
  history.add(losses(13, 20));
  const auto all = history.summary();
  CHECK(all.missing == 3 * batch);
  CHECK(all.loss.size() == 17);
  CHECK(all.samples[9] == 10 * batch);
  CHECK(all.samples[10] == 14 * batch);

  loss_history from_the_start{0, 0};
  from_the_start.add(losses(0, 30'000));
  from_the_start.restart(0);
  from_the_start.add(losses(0, 7));
  CHECK(from_the_start.summary().missing == 0);
  CHECK(from_the_start.summary().samples.back() == 7 * batch);
}

} // namespace troupe::loss_history_test
