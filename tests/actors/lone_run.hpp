// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/real_run_loop.hpp"
#include "actors/run/virtual_run_loop.hpp"
#include "plan/stage_buckets.hpp"
#include "tests/actors/stand_in.hpp"
#include "tests/actors/tiny.hpp"

#include <caf/exit_reason.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tiny {

/// A run that has only a coordinator of the test's own: the environment in which run
/// loops are tested.
class lone_run {
public:
  /// Called with each message to the coordinator: "hold", "proceed 3".
  using hears = std::function<void(const std::string&)>;

  explicit lone_run(clock_kind by)
    : plan(training_of(gpipe(), {1, 1, 4}, by)), house(by) {
    watch = std::make_unique<run_monitor>(plan, wall);
  }

  ~lone_run() {
    caf::anon_send_exit(coordinator, caf::exit_reason::user_shutdown);
    while (house.actors() > 0) {
      house.settle();
      std::this_thread::yield();
    }
  }

  /// Makes the coordinator, and the run loop that waits for the run.
  std::unique_ptr<run_loop> managed(hears answer) {
    answer_ = std::move(answer);
    const auto note = [this](const std::string& what) {
      {
        const std::lock_guard guard{lock_};
        heard_.push_back(what);
      }
      answer_(what);
    };
    coordinator = stand_in<coordinator_actor>(
      house.system(), meter, [note](const mail::hold&) { note("hold"); },
      [note](const mail::resume& p) { note("proceed " + std::to_string(p.evaluated)); },
      [note](const mail::stop&) { note("stop"); },
      [note](const mail::collect&) { note("collect"); },
      [note](const mail::save& s) {
        note(s.keep ? s.hand_over ? "keep and save" : "keep" : "save");
      },
      [note](const mail::fetch_kept_state& r) {
        note("recall " + std::to_string(r.batches) + " of "
             + std::to_string(r.where.data));
      },
      [note](const mail::resume_from_checkpoint&) { note("go on"); },
      [note](const mail::explain&) { note("explain"); });
    const managed_run run{plan,  callbacks,   board, house,
                          meter, coordinator, wall,  others};
    if (plan.machine.clock == clock_kind::real)
      return std::make_unique<real_run_loop>(run, *watch);
    return std::make_unique<virtual_run_loop>(run, clock);
  }

  std::vector<std::string> heard() {
    const std::lock_guard guard{lock_};
    return heard_;
  }

  /// The snapshot of the only stage after a batch: every parameter is the batch's
  /// number.
  run_status::snapshot shown(int batches) {
    const auto buckets = buckets_of(plan, {});
    mail::snapshot part{batches, {}, {}};
    for (const auto values : buckets) {
      auto& pool =
        *pools_.emplace_back(std::make_unique<troupe::pool>("a test", 1, values, all_));
      part.parameters.push_back(pool.acquire());
      std::fill_n(part.parameters.back().data(), values, static_cast<float>(batches));
    }
    return {part};
  }

private:
  memory_account all_;
  std::vector<std::unique_ptr<troupe::pool>> pools_;
  std::mutex lock_;
  std::vector<std::string> heard_;
  hears answer_;

public:
  run_plan plan;
  run_callbacks callbacks;
  distant_run* others = nullptr; ///< Processes elsewhere; null: none.
  run_status board;
  message_meter meter;
  wall_clock wall;
  virtual_clock clock;
  std::unique_ptr<run_monitor> watch;
  actor_runtime house;
  coordinator_actor coordinator;
};

} // namespace tiny
