// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/rank/scheduler_core.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace tiny {

/// A scheduler of a rank that hosts one stage.
struct scheduled {
  explicit scheduled(const run_plan& made, int rank = 0, int depth = 1)
    : plan(std::make_shared<const run_plan>(made)),
      where(plan->hosted_by(rank).front()),
      core(plan, rank, depth) {
    // nop
  }

  action of(op what, int microbatch) const {
    return {what, where.direction, where.stage, microbatch};
  }
  void arrive(op what, int microbatch) {
    core.handle(mail::arrived{of(what, microbatch), {role::stage, where}});
  }
  void done(op what, int microbatch) {
    core.handle(mail::done{{.action = of(what, microbatch)}, {role::stage, where}});
  }
  void pause(op what, int microbatch) {
    const auto who = what == op::update ? role::optimizer_shard : role::stage;
    core.handle(mail::paused{{.action = of(what, microbatch)}, {who, where}});
  }

  /// The action granted now, with the receiver if that is not the stage; "" if none.
  std::string grant() {
    const auto g = core.grant();
    if (!g)
      return "";
    CHECK(g->receiver.where == where);
    const char* names[] = {"", " by the optimizer", " by an expert", " by a server"};
    return to_string(g->granted_action) + names[static_cast<int>(g->receiver.kind)];
  }

  /// Grants all possible actions, and ends the first of those, as long as any is left.
  std::vector<std::string> run_ahead() {
    std::vector<std::string> result;
    std::deque<scheduler_core::granted> under_way;
    do {
      while (const auto g = core.grant()) {
        result.push_back(to_string(g->granted_action, true));
        under_way.push_back(*g);
      }
      if (under_way.empty())
        break;
      core.handle(mail::done{{.action = under_way.front().granted_action},
                             under_way.front().receiver});
      under_way.pop_front();
    } while (true);
    return result;
  }

  /// Grants and ends actions, as long as any is granted.
  std::vector<std::string> run() {
    std::vector<std::string> result;
    for (auto g = core.grant(); g; g = core.grant()) {
      result.push_back(to_string(g->granted_action));
      core.handle(mail::done{{.action = g->granted_action}, g->receiver});
    }
    return result;
  }

  std::shared_ptr<const run_plan> plan;
  position where;
  scheduler_core core;
};

} // namespace tiny
