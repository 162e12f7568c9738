// SPDX-License-Identifier: BSD-3-Clause
// The loop that waits for a run, with both clocks: the actions of the loop, and the
// messages to the coordinator.

#include "actors/run/run_loop.hpp"

#include "actors/checkpoints/gathered_state.hpp"
#include "tests/actors/lone_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <chrono>

namespace troupe::stage_manager_test {

using Catch::Matchers::ContainsSubstring;

namespace {

using texts = std::vector<std::string>;

void no_answer(const std::string&) {
  // nop
}

} // namespace

TEST_CASE("every snapshot is evaluated, and ranks hear how many were", "[manager]") {
  tiny::lone_run run{GENERATE(from_range(tiny::clocks()))};
  std::vector<int> evaluated;
  run.callbacks.evaluate = [&](int batches, const std::vector<const float*>& values) {
    evaluated.push_back(batches);
    CHECK(values.size() == run.plan.work->whole.layers.size());
    for (const auto* const bucket : values)
      CHECK(bucket[0] == static_cast<float>(batches));
  };
  run.board.post_snapshot(run.shown(1));
  run.board.post_snapshot(run.shown(3));
  const auto manager = run.managed([&](const std::string& what) {
    if (what == "hold")
      run.board.post_held();
    if (what == "proceed 2")
      run.board.post_finished();
  });
  manager->wait();
  CHECK(evaluated == std::vector{1, 3});
  CHECK_FALSE(manager->stopping());
  CHECK(run.heard().back() == "proceed 2");
}

TEST_CASE("the run's wall time stands still during an evaluation", "[manager]") {
  tiny::lone_run run{GENERATE(from_range(tiny::clocks()))};
  run.callbacks.evaluate = [&](int, const std::vector<const float*>&) {
    const auto before = run.wall.now();
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() == start)
      continue;
    CHECK(run.wall.now() == before);
  };
  run.board.post_snapshot(run.shown(1));
  const auto manager = run.managed([&](const std::string& what) {
    if (what == "hold")
      run.board.post_held();
    if (what == "proceed 1")
      run.board.post_finished();
  });
  manager->wait();
  const auto after = run.wall.now();
  while (run.wall.now() == after) // the clock runs again
    continue;
}

TEST_CASE("who ends a run early tells it once, and evaluates nothing more",
          "[manager]") {
  tiny::lone_run run{GENERATE(from_range(tiny::clocks()))};
  const std::atomic<bool> interrupted = true;
  run.callbacks.interrupted = &interrupted;
  run.callbacks.evaluate = [](int, const std::vector<const float*>&) { FAIL(); };
  run.board.post_snapshot(run.shown(1));
  run.board.post_snapshot(run.shown(2));
  const auto manager = run.managed([&](const std::string& what) {
    if (what == "proceed 2")
      run.board.post_finished();
  });
  manager->wait();
  CHECK(manager->stopping());
  CHECK(run.heard() == texts{"stop", "proceed 2"});
}

TEST_CASE("a run that fails is waited for no longer", "[manager]") {
  tiny::lone_run run{GENERATE(from_range(tiny::clocks()))};
  run.callbacks.evaluate = [](int, const std::vector<const float*>&) { FAIL(); };
  run.board.post_failure("stage 0: no more");
  const auto manager = run.managed(no_answer);
  manager->wait();
  CHECK(run.heard().empty());
  CHECK(manager->collect().empty());
}

TEST_CASE("what stages have in the end is collected", "[manager]") {
  tiny::lone_run run{GENERATE(from_range(tiny::clocks()))};
  const auto manager = run.managed([&](const std::string& what) {
    if (what == "collect")
      run.board.post_collected({{.where = {}, .updates = 3, .samples = 6}});
  });
  const auto all = manager->collect();
  REQUIRE(all.size() == 1);
  CHECK(all.front().updates == 3);
  CHECK_FALSE(run.board.failure());
}

TEST_CASE("ranks go on when stages have copied, before the copies have come",
          "[manager]") {
  tiny::lone_run run{GENERATE(from_range(tiny::clocks()))};
  run.plan.copies.checkpoint_every = 2;
  texts said;
  run.callbacks.save = [&](const training_copies& all) {
    said = run.heard();
    CHECK(all.batches == 2);
    CHECK(all.stages.size() == 1); // a stage with nothing to save is not among them
    run.board.post_finished();
  };
  run.board.post_checkpoint(2);
  const auto manager = run.managed([&](const std::string& what) {
    if (what == "save")
      run.board.post_copied();
    if (what == "go on")
      run.board.post_saved({mail::saved{}, {.ages = {0}, .versions = {buffer{}}}});
  });
  manager->wait();
  CHECK(said == texts{"save", "go on"});
  CHECK(run.heard() == said);
}

TEST_CASE("copies that came before a run failed are saved", "[manager]") {
  tiny::lone_run run{GENERATE(from_range(tiny::clocks()))};
  run.plan.copies.checkpoint_every = 2;
  int saved = 0;
  run.callbacks.save = [&](const training_copies& all) { saved += all.batches; };
  run.board.post_checkpoint(2);
  const auto manager = run.managed([&](const std::string& what) {
    if (what != "save")
      return;
    run.board.post_copied();
    run.board.post_saved({});
    run.board.post_failure("no more");
  });
  manager->wait();
  manager->finish_saving();
  CHECK(saved == 2);
}

TEST_CASE("what is copied next has the room of what was copied before", "[manager]") {
  tiny::lone_run run{GENERATE(from_range(tiny::clocks()))};
  run.plan.copies.checkpoint_every = 2;
  texts order;
  run.callbacks.save = [&](const training_copies& all) {
    order.push_back("saves " + std::to_string(all.batches));
    if (all.batches == 4)
      run.board.post_finished();
  };
  run.callbacks.await_saved = [&] {
    order.push_back("waits, " + std::to_string(run.heard().size()) + " heard");
  };
  run.board.post_checkpoint(2);
  run
    .managed([&](const std::string& what) {
      if (what == "save")
        run.board.post_copied();
      if (what == "go on" && order.size() == 1)
        run.board.post_checkpoint(4); // arrives before the copies
      if (what == "go on" && run.plan.machine.clock == clock_kind::virtual_time)
        run.clock.call_at(run.clock.now() + 1, [&] { run.board.post_saved({}); });
      else if (what == "go on")
        run.board.post_saved({});
    })
    ->wait();
  CHECK(order == texts{"waits, 0 heard", "saves 2", "waits, 2 heard", "saves 4"});
  CHECK(run.heard() == texts{"save", "go on", "save", "go on"});
}

TEST_CASE("steps are kept while a checkpoint is on its way, and the next one waits",
          "[manager]") {
  tiny::lone_run run{GENERATE(from_range(tiny::clocks()))};
  run.plan.copies.checkpoint_every = 2;
  run.plan.copies.keep_steps = true;
  texts order;
  run.callbacks.save = [&](const training_copies& all) {
    order.push_back("saves " + std::to_string(all.batches));
    if (all.batches == 4)
      run.board.post_finished();
  };
  run.callbacks.await_saved = [&] { order.emplace_back("waits"); };
  run.board.post_checkpoint(1);
  int batches = 1;
  const auto later = [&](std::function<void()> what) {
    if (run.plan.machine.clock == clock_kind::real)
      return what();
    run.clock.call_at(run.clock.now() + 1, what);
  };
  run
    .managed([&](const std::string& what) {
      if (what != "go on")
        return run.board.post_copied();
      if (++batches <= 4)
        run.board.post_checkpoint(batches);
      if (batches >= 4) // copies of 2 are still under way, and then copies of 4
        later([&] { run.board.post_saved({}); });
    })
    ->wait();
  CHECK(order == texts{"waits", "saves 2", "waits", "saves 4"});
  CHECK(run.heard()
        == texts{"keep", "go on", "keep and save", "go on", "keep", "go on",
                 "keep and save", "go on"});
}

TEST_CASE("a resumed run keeps steps before its first evaluation", "[manager]") {
  tiny::lone_run run{clock_kind::virtual_time};
  run.plan.dims.batches_before = 5; // an evaluation was due at 4, another one is at 8
  run.plan.copies.evaluate_every = 4;
  run.plan.copies.keep_steps = true;
  run.board.post_checkpoint(1);
  run
    .managed([&](const std::string& what) {
      if (what == "keep")
        run.board.post_copied();
      if (what == "go on")
        run.board.post_finished();
    })
    ->wait();
  CHECK(run.heard() == texts{"keep", "go on"});
}

TEST_CASE("at the end copies are waited for, and nobody is told to go on",
          "[manager]") {
  tiny::lone_run run{GENERATE(from_range(tiny::clocks()))};
  int saved = 0;
  run.callbacks.save = [&](const training_copies&) { ++saved; };
  const bool fails = GENERATE(false, true);
  const auto manager = run.managed([&](const std::string&) {
    if (fails)
      return run.board.post_failure("no more");
    run.board.post_copied();
    run.board.post_saved({});
  });
  manager->save(7);
  CHECK(saved == (fails ? 0 : 1));
  CHECK(run.heard() == texts{"save"});
}

TEST_CASE("a run in virtual time is over at the event that finishes it", "[manager]") {
  tiny::lone_run run{clock_kind::virtual_time};
  run.clock.call_at(5, [&] { run.board.post_finished(); });
  run.clock.call_at(7, [] { FAIL(); });
  run.managed(no_answer)->wait();
  CHECK(run.board.finished());
  CHECK(run.clock.now() == 5);
}

TEST_CASE("a run in virtual time that has no event left has stalled, and says why",
          "[manager]") {
  tiny::lone_run run{clock_kind::virtual_time};
  run.clock.call_at(5, [] {});
  run
    .managed([&](const std::string& what) {
      if (what == "explain")
        run.board.post_explanation({"stage 0", "an activation", "stage 1"});
    })
    ->wait();
  REQUIRE(run.board.failure());
  CHECK_THAT(*run.board.failure(),
             ContainsSubstring("nothing runs and no event is pending")
               && ContainsSubstring("stage 0 waits for an activation from stage 1"));
}

TEST_CASE("in virtual time what stages have is waited for while events are left",
          "[manager]") {
  tiny::lone_run run{clock_kind::virtual_time};
  const bool comes = GENERATE(true, false);
  const auto manager = run.managed([&](const std::string&) {
    run.clock.call_at(9, [&] {
      if (comes)
        run.board.post_collected({{}});
    });
  });
  CHECK(manager->collect().size() == (comes ? 1 : 0));
  CHECK(run.board.failure().has_value() != comes);
}

TEST_CASE("in real time ranks rest before an evaluation", "[manager]") {
  tiny::lone_run run{clock_kind::real};
  run.callbacks.evaluate = [&](int, const std::vector<const float*>&) {
    CHECK(run.heard() == texts{"hold"});
  };
  run.board.post_snapshot(run.shown(1));
  const auto manager = run.managed([&](const std::string& what) {
    if (what == "hold")
      run.board.post_held();
    if (what == "proceed 1")
      run.board.post_finished();
  });
  manager->wait();
  CHECK(run.heard() == texts{"hold", "proceed 1"});
}

TEST_CASE("in real time a run that fails while ranks come to rest is not evaluated",
          "[manager]") {
  tiny::lone_run run{clock_kind::real};
  run.callbacks.evaluate = [](int, const std::vector<const float*>&) { FAIL(); };
  run.board.post_snapshot(run.shown(1));
  const auto manager =
    run.managed([&](const std::string&) { run.board.post_failure("no more"); });
  manager->wait();
  CHECK(run.heard() == texts{"hold"});
}

TEST_CASE("how far a run has come is reported while it goes on", "[manager]") {
  tiny::lone_run run{clock_kind::virtual_time};
  run.board.post_progress({.samples = 12, .loss = 0.5});
  std::int64_t told = 0;
  run.callbacks.report = [&](const progress& p) { told = p.samples; };
  const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes{1};
  std::function<void()> next = [&] {
    if (told > 0 || std::chrono::steady_clock::now() > patience)
      run.board.post_finished();
    else
      run.clock.call_at(run.clock.now() + 1, next);
  };
  next();
  run.managed(no_answer)->wait();
  CHECK(told == 12);
}

} // namespace troupe::stage_manager_test
