// SPDX-License-Identifier: BSD-3-Clause
// Runs that have stalled: the report, and the end of the run. A watchdog whose process
// was stopped between two looks.

#include "actors/run/stall.hpp"

#include "actors/pipeline/data_source.hpp"
#include "actors/run/awake_time.hpp"
#include "actors/run/local_run.hpp"
#include "schedules/check.hpp"
#include "schedules/program.hpp"
#include "tests/actors/brittle_data.hpp"
#include "tests/actors/brittle_layer.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace troupe::stall_test {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

using verdict = stall_rule::verdict;

constexpr nanoseconds second = 1'000'000'000;

/// One watched device, on a clock that stands still.
struct lone_device {
  lone_device() { clock.pause(); }

  stall_rule rule(int patience = 1) {
    return {{{"rank 0", &seen, [](const task&) { return "at work"; }, patience}}, 10s};
  }

  wall_clock clock;
  occupation seen{clock};
};

/// Two ranks that each wait for the other's next action.
schedule deadlocked() {
  return {.name = "deadlocked",
          .order = batch_by_batch([](int rank, const shape& dims) {
            auto p = generate(one_f_one_b(), {dims.stages, dims.microbatches}, rank);
            const auto swap = [&](const action& a, const action& b) {
              std::swap(*std::ranges::find(p, a), *std::ranges::find(p, b));
            };
            if (rank == 0)
              swap({op::forward, 0, 0, 1}, {op::backward, 0, 0, 0});
            if (rank == 1)
              swap({op::forward, 0, 1, 1}, {op::backward, 0, 1, 0});
            return p;
          })};
}

/// A thread that passes the gate waits until the gate is opened.
class gate {
public:
  void pass() {
    std::unique_lock guard{lock_};
    ++waiting_;
    news_.notify_all();
    news_.wait(guard, [this] { return open_; });
    --waiting_;
    news_.notify_all();
  }

  void open() {
    const std::lock_guard guard{lock_};
    open_ = true;
    news_.notify_all();
  }

private:
  std::mutex lock_;
  std::condition_variable news_;
  bool open_ = false;
  int waiting_ = 0;
};

} // namespace

TEST_CASE("a run in which nobody is at anything stalls after the timeout", "[stall]") {
  lone_device device;
  auto rule = device.rule();
  CHECK(rule.look(0, 0) == verdict::fine);
  CHECK(rule.look(0, 10 * second - 1) == verdict::fine);
  CHECK(rule.look(0, 10 * second) == verdict::stalled);
  device.seen.begin({});
  device.seen.end();
  CHECK(rule.look(0, 12 * second) == verdict::fine); // a task has ended since
  CHECK(rule.look(0, 22 * second) == verdict::stalled);
}

TEST_CASE("a task is stuck when it takes twenty times as long as any of its kind",
          "[stall]") {
  lone_device device;
  auto rule = device.rule();
  device.clock.resume();
  for (int i = 0; i < 40; ++i) {
    const auto start = device.seen.begin({.kind = 1});
    while (device.clock.now() == start)
      continue;
    device.seen.end();
  }
  const auto longest = device.seen.longest(1);
  stall_rule impatient{{{"rank 0", &device.seen, {}}}, 0ms};
  const auto start = device.seen.begin({.kind = 1, .operations = 1e15});
  CHECK(impatient.look(start, 0) == verdict::slow);
  CHECK(impatient.look(start + 20 * longest - 1, 1) == verdict::slow);
  CHECK(impatient.look(start + 20 * longest, 2) == verdict::stalled);
}

TEST_CASE("the first tasks of a kind may take what a very slow machine would",
          "[stall]") {
  lone_device device;
  auto rule = device.rule();
  const auto start = device.seen.begin({.kind = 2, .operations = 1e10}); // 100 s
  CHECK(rule.look(start, 0) == verdict::fine);
  CHECK(rule.look(start + 99 * second, 99 * second) == verdict::slow);
  CHECK(rule.look(start + 100 * second, 100 * second) == verdict::stalled);
}

TEST_CASE("who reads may take ten timeouts", "[stall]") {
  lone_device device;
  auto rule = device.rule(10);
  const auto start = device.seen.begin({.kind = reading});
  CHECK(rule.look(start, 0) == verdict::fine);
  CHECK(rule.look(start + 11 * second, 11 * second) == verdict::slow);
  CHECK(rule.look(start + 99 * second, 99 * second) == verdict::slow);
  CHECK(rule.look(start + 101 * second, 101 * second) == verdict::stalled);
}

TEST_CASE("a run that stalls says who waits for whom", "[stall]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  REQUIRE(check(deadlocked(), {2, 2}).has_value());
  auto plan = tiny::training_of(deadlocked(), {2, 2, 2}, clock);
  plan.machine.stall_timeout =
    std::chrono::seconds{1}; // longer than pauses of a busy machine
  const auto result = perform(plan);
  CHECK(result.outcome == ending::failed);
  CHECK_THAT(result.failure, ContainsSubstring("the run has stalled"));
  CHECK_THAT(
    result.failure,
    ContainsSubstring("a cycle: scheduler of rank 0 waits for scheduler of rank 1 "
                      "waits for scheduler of rank 0"));
  CHECK_THAT(result.failure, ContainsSubstring("the input of B0 of stage 0"));
}

TEST_CASE("a cycle is found among those who wait, and nobody is forgotten", "[stall]") {
  const auto text = describe_stall({{"a", "a gradient", "b"},
                                    {"b", "an activation", "c"},
                                    {"c", "a version", "b"},
                                    {"d", "", ""},
                                    {"e", "demand", ""}});
  CHECK_THAT(text, ContainsSubstring("a cycle: b waits for c waits for b"));
  CHECK_THAT(text, ContainsSubstring("  a waits for a gradient from b\n"));
  CHECK_THAT(text, ContainsSubstring("  e waits for demand\n"));
  CHECK_THAT(text, !ContainsSubstring("  d "));
  CHECK(describe_stall({{"a", "b", "c"}}) == "these wait:\n  a waits for b from c\n");
  CHECK(describe_stall({{"a", "", ""}}) == "no actor reports that it waits");
}

TEST_CASE("a stall names first what of the user's own has to go on", "[stall]") {
  CHECK(describe_stall({{"a", "b", "c"}, {"c", "d", "a", "c's own is not over"}})
        == "c's own is not over\ntherefore actors wait:\n  a waits for b from c\n  c "
           "waits for d from a\n");
  CHECK(describe_stall({{"a relay", "", "", "a relay has something"}})
        == "a relay has something\ntherefore actors wait:\n");
}

TEST_CASE("who does not answer is named with what may keep it from that", "[stall]") {
  run_status board;
  const stall_watchdog impatient{1ms,
                                 board,
                                 {.look = [] { return verdict::stalled; },
                                  .at_work = [] { return std::string{}; },
                                  .request_explanations = [] {},
                                  .help = [] {},
                                  .asked = {"a", "b"},
                                  .silence = ": a function has not returned"}};
  while (!board.failure())
    board.wait(100ms);
  CHECK_THAT(*board.failure(),
             ContainsSubstring("  no answer from a, b: a function has not returned\n"));
}

TEST_CASE("a layer that never ends is named, with what the others wait for",
          "[stall]") {
  const bool interrupts = GENERATE(false, true);
  const int threads = interrupts ? 2 : 1; // the only thread that may compute never ends
  const auto stuck = std::make_shared<gate>();
  auto plan = tiny::training_of(one_f_one_b(), {3, 4, 1000}, clock_kind::real,
                                tiny::gpt(), 0, threads);
  std::atomic<bool> interrupted = false;
  auto& layers = plan.work->whole.layers;
  const auto in_stage_1 = static_cast<std::size_t>(plan.work->first_layers[1]);
  layers[in_stage_1] = std::make_shared<tiny::brittle_layer>(
    layers[in_stage_1], 300, [&interrupted, interrupts, stuck] {
      interrupted = interrupts;
      stuck->pass();
    });
  plan.machine.stall_timeout = 1s;
  const auto result = perform(plan, {.interrupted = &interrupted});
  CHECK(result.outcome == ending::failed);
  CHECK(is_at_work());
  CHECK_THAT(result.failure,
             ContainsSubstring("the run has stalled: no action has ended for 1000 ms\n"
                               "  rank 1 has been running F"));
  CHECK_THAT(result.failure, ContainsSubstring(" of stage 1 for "));
  if (threads == 2)
    CHECK_THAT(result.failure,
               ContainsSubstring("stage 0 waits for the gradient of ")
                 && ContainsSubstring("stage 2 waits for an activation"));
  CHECK_THAT(result.failure, ContainsSubstring("  stage 1 waits for F")
                               && ContainsSubstring(" to end on its device\n"));
  CHECK_THAT(result.failure, !ContainsSubstring("no answer"));
  stuck->open();
}

TEST_CASE("slow data are no stall, and what is waited for is told", "[stall]") {
  gate slow;
  auto plan = tiny::training_of(gpipe(), {2, 2, 4}, clock_kind::real);
  plan.work->data =
    std::make_shared<tiny::brittle_data>(plan.work->data, 5, [&] { slow.pass(); });
#ifdef TROUPE_SANITIZED // a busy machine may leave one of many threads waiting for
                        // longer
  plan.machine.stall_timeout = 3s;
#else
  plan.machine.stall_timeout = 500ms;
#endif
  std::string told;
  const auto open_then = [&](const progress& p) {
    if (p.waits_for.empty())
      return;
    told = p.waits_for;
    slow.open();
  };
  const auto result = perform(plan, {.report = open_then});
  CHECK(result.outcome == ending::finished);
  CHECK_THAT(told, ContainsSubstring("data_source has been reading microbatch 2 for "));
}

TEST_CASE("a watch that was stopped counts little of that time as silence", "[nodes]") {
  awake_time watch{20};
  silence other;
  const auto look = [&](nanoseconds now, nanoseconds heard) {
    return other.look(now, heard, watch.look(now));
  };
  CHECK(look(100, 100) == 0);
  CHECK(look(110, 100) == 10);
  CHECK(look(120, 118) == 2);
  CHECK(look(130, 118) == 12);
  CHECK(look(1130, 118) == 32); // stopped: arrived messages are not read yet
  CHECK(look(1140, 1139) == 1); // now read
  CHECK(look(1150, 1139) == 11);
  for (nanoseconds now = 1160; now <= 1260; now += 10)
    CHECK(look(now, 1139) == now - 1139); // no message has come
}

} // namespace troupe::stall_test
