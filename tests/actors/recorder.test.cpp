// SPDX-License-Identifier: BSD-3-Clause
// The record of a run, for runs of any length.

#include "actors/run/recorder.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>

namespace troupe::recorder_test {

namespace {

void add_numbers(bounded_list<std::int64_t>& to, int count) {
  for (int i = 1; i <= count; ++i)
    to.add(i, [](std::int64_t& a, std::int64_t b) { a += b; });
}

/// The losses of a run in the order of arrival: each microbatch has its number as loss,
/// and some come out of order.
std::vector<mail::microbatch_loss> losses_of(const run_plan& plan) {
  std::vector<mail::microbatch_loss> result;
  const auto rows = static_cast<double>(plan.work->whole.rows);
  for (int m = 0; m < plan.mesh[axis::data] * plan.dims.total(); ++m) {
    const auto samples = plan.batches().samples_of(m);
    result.push_back({m, samples, {}});
    result.back().sum.loss =
      static_cast<double>(m) * static_cast<double>(samples) * rows;
  }
  std::mt19937 random{5};
  constexpr std::size_t off = 9;
  for (std::size_t i = 0; i + off < result.size(); i += off)
    std::shuffle(result.begin() + static_cast<std::ptrdiff_t>(i),
                 result.begin() + static_cast<std::ptrdiff_t>(i + off), random);
  return result;
}

} // namespace

TEST_CASE("a bounded list is complete until it is full, then of pairs", "[record]") {
  for (const int count : {0, 1, 7, 8, 9, 16, 17, 31, 32, 33, 1000}) {
    bounded_list<std::int64_t> list{8};
    add_numbers(list, count);
    const auto& entries = list.entries();
    CHECK(std::accumulate(entries.begin(), entries.end(), std::int64_t{0})
          == std::int64_t{count} * (count + 1) / 2);
    CHECK(entries.size() <= 8);
    CHECK((count < 8 || entries.size() > 4));
    // each entry sums numbers that follow one another
    for (std::size_t i = 0; i + 1 < entries.size(); ++i) {
      const auto n = list.every(), first = static_cast<std::int64_t>(i) * n;
      CHECK(entries[i] == n * first + n * (n + 1) / 2);
    }
  }
  bounded_list<std::int64_t> unbounded{0};
  add_numbers(unbounded, 1000);
  CHECK(unbounded.entries().size() == 1000);
}

TEST_CASE("losses are those of minibatches in index order, with replicas' together",
          "[record]") {
  for (const int data : {1, 2})
    for (const auto& sch : {gpipe(), pipedream(3), ampnet()}) {
      auto plan =
        tiny::training_of(sch, {1, 4, 5}, clock_kind::virtual_time, tiny::gpt(), 11);
      plan.mesh[axis::data] = data;
      loss_log log{plan};
      std::vector<loss_so_far> told;
      for (const auto& loss : losses_of(plan))
        std::ranges::copy(log.add(loss).losses, std::back_inserter(told));
      // By definition: the samples of an entry's microbatches, replica by replica.
      const int size = sch.local_rule() ? 1 : update_size(sch, plan.dims);
      std::vector<double> losses;
      std::vector<std::int64_t> seen;
      std::int64_t so_far = 0;
      for (int first = 0; first < plan.dims.total(); first += size) {
        double sum = 0;
        std::int64_t samples = 0;
        for (int d = 0; d < data; ++d)
          for (int m = first; m < std::min(first + size, plan.dims.total()); ++m) {
            const auto n = plan.samples_of(d, m);
            sum += static_cast<double>(plan.microbatch_of_all(d, m))
                   * static_cast<double>(n)
                   * static_cast<double>(plan.work->whole.rows);
            samples += n;
          }
        losses.push_back(sum / static_cast<double>(samples * plan.work->whole.rows));
        seen.push_back(so_far += samples);
      }
      CHECK(log.losses() == losses);
      CHECK(log.samples() == seen);
      CHECK(log.every() == 1);
      REQUIRE(told.size() == losses.size());
      for (std::size_t i = 0; i < told.size(); ++i)
        CHECK(told[i] == loss_so_far{seen[i], losses[i]});
    }
}

TEST_CASE("losses that have not come are counted, and one that comes twice is one",
          "[record]") {
  const auto plan = tiny::training_of(gpipe(), {1, 4, 5}, clock_kind::virtual_time);
  const auto told_without = [&](const std::vector<int>& missing) {
    auto log = std::make_unique<loss_log>(plan);
    for (int twice = 0; twice < 2; ++twice)
      for (const auto& loss : losses_of(plan))
        if (std::ranges::find(missing, loss.microbatch) == missing.end())
          log->add(loss);
    return log;
  };
  CHECK(told_without({})->missing(true) == 0);
  CHECK(told_without({})->losses().size() == 5);
  const auto gaps = told_without({7, 12, 19});
  CHECK(gaps->missing(true) == 3);
  CHECK(gaps->missing(false) == 2); // the user may have ended the run before the last
  CHECK(gaps->losses().size() == 1);
}

TEST_CASE("a loss that comes twice counts once", "[record]") {
  const auto plan =
    tiny::training_of(gpipe(), {1, 4, 6}, clock_kind::virtual_time, tiny::gpt(), 11);
  loss_log once{plan}, twice{plan};
  const auto all = losses_of(plan);
  const auto add = [](loss_log& to, const mail::microbatch_loss& loss) {
    to.add(loss);
    to.ended(loss.microbatch, 10 * loss.microbatch);
  };
  constexpr std::size_t later = 3;
  for (std::size_t i = 0; i < all.size(); ++i) {
    add(once, all[i]);
    add(twice, all[i]);
    add(twice, all[i]);
    add(twice, all[i < later ? 0 : i - later]);
  }
  CHECK(twice.losses().size() == 6);
  CHECK(twice.losses() == once.losses());
  CHECK(twice.samples() == once.samples());
  CHECK(twice.ends().size() == 6);
  CHECK(twice.ends() == once.ends());
}

TEST_CASE("losses of a long run are means of neighbours, weighted by samples",
          "[record]") {
  auto plan = tiny::training_of(pipedream(), {1, 2, 15'000}, clock_kind::virtual_time,
                                tiny::gpt(), 3); // microbatches of 2 samples and 1
  loss_log complete{plan};
  plan.keep.record = false;
  loss_log bounded{plan};
  for (const auto& loss : losses_of(plan)) {
    complete.add(loss);
    bounded.add(loss);
    bounded.ended(loss.microbatch, 10 * loss.microbatch);
  }
  CHECK(complete.ends().empty()); // some times are unknown
  CHECK(complete.losses().size() == 30'000);
  const auto losses = bounded.losses();
  const auto samples = bounded.samples();
  const auto ends = bounded.ends();
  CHECK(bounded.every() == 4);
  REQUIRE(losses.size() == 7'500);
  REQUIRE(ends.size() == losses.size());
  CHECK(samples.back() == 45'000);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const auto m = 4 * static_cast<double>(i); // of 2, 1, 2 and 1 samples
    CHECK(std::abs(losses[i] - (2 * m + (m + 1) + 2 * (m + 2) + (m + 3)) / 6) < 1e-6);
    CHECK(samples[i] == 6 * static_cast<std::int64_t>(i + 1));
    CHECK(ends[i] == 10 * (4 * static_cast<std::int64_t>(i) + 3));
  }
}

TEST_CASE(
  "a loss ends with the latest forward of its entry, in whatever order they end",
  "[record]") {
  auto plan =
    tiny::training_of(gpipe(), {1, 3, 2}, clock_kind::virtual_time, tiny::gpt(), 6);
  plan.mesh[axis::data] = 2;
  const std::vector<nanoseconds> ends{50, 90, 70,  40,  60,  30, // of the first step
                                      95, 80, 100, 140, 110, 120};
  loss_log log{plan};
  auto losses = losses_of(plan);
  std::ranges::sort(losses, {}, &mail::microbatch_loss::microbatch);
  for (int m = 0; m < 6; ++m)
    log.add(losses[static_cast<std::size_t>(m)]);
  for (const int m : {8, 2, 0, 5, 9, 1, 4, 11, 3, 10, 7, 6}) // also without a loss yet
    log.ended(m, ends[static_cast<std::size_t>(m)]);
  CHECK(log.ends() == std::vector<nanoseconds>{90});
  for (std::size_t m = 6; m < 12; ++m)
    log.add(losses[m]);
  CHECK(log.ends() == std::vector<nanoseconds>{90, 140});
}

TEST_CASE("the loads of experts in a long run are sums over several steps",
          "[record]") {
  expert_loads loads;
  for (int step = 0; step < 25'000; ++step)
    for (const std::size_t layer : {1, 3})
      loads.add(step, layer, {step, 1}, 2);
  CHECK(loads.every == 4);
  for (const auto& [layer, steps] : loads.by_layer) {
    REQUIRE(steps.size() == 6'250);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CHECK(steps[i].rows[0] == 16 * static_cast<std::int64_t>(i) + 6);
      CHECK(steps[i].rows[1] == 4);
      CHECK(steps[i].dropped == 8);
    }
  }
}

TEST_CASE("who watches a run is told of all that runs, with the times of the record",
          "[record]") {
  const shape dims{3, 4, 2};
  auto plan = GENERATE_COPY(tiny::simulation(one_f_one_b(), dims),
                            tiny::training_of(one_f_one_b(), dims, clock_kind::real));
  plan.observed.watched = true;
  plan.observed.model_times = bool(plan.work) && GENERATE(false, true);
  record told(static_cast<std::size_t>(plan.ranks()));
  const auto result = perform(plan, {.watch = [&](const recent_actions& recent) {
                                for (const auto& [rank, what] : recent.ran)
                                  told[static_cast<std::size_t>(rank)].push_back(what);
                              }});
  REQUIRE(result.actions.size() == told.size());
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    REQUIRE(told[rank].size() == result.actions[rank].size());
    REQUIRE_FALSE(told[rank].empty());
    for (std::size_t i = 0; i < told[rank].size(); ++i) {
      CHECK(told[rank][i].action == result.actions[rank][i].action);
      CHECK(told[rank][i].start == result.actions[rank][i].start);
      CHECK(told[rank][i].end == result.actions[rank][i].end);
    }
  }
}

TEST_CASE("actions that nobody comes for are dropped, the oldest first", "[record]") {
  run_status board;
  constexpr int count = 100'000;
  for (int i = 0; i < count; ++i)
    board.post_actions({{0, {.action = {op::forward, 0, 0, i}, .end = i}}});
  const auto [ran, dropped_to] = board.take_actions();
  CHECK(ran.size() < count / 2);
  REQUIRE(ran.size() > 100);
  for (std::size_t i = 0; i < ran.size(); ++i)
    CHECK(ran[i].measured.action.microbatch
          == count - static_cast<int>(ran.size()) + static_cast<int>(i));
  CHECK(dropped_to == ran.front().measured.end - 1);
  const auto rest = board.take_actions();
  CHECK(rest.ran.empty());
  CHECK(rest.dropped_to == 0);
}

} // namespace troupe::recorder_test
