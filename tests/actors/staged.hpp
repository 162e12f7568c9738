// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/pipeline/simulated_stage.hpp"
#include "actors/pipeline/stage_core.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/actors/written_port.hpp"

#include <memory>
#include <string>
#include <vector>

namespace tiny {

/// A stage without actors, a port, and all requests that the stage sends to the port.
template <class Work = simulated_stage>
struct staged {
  staged(const run_plan& made, position at)
    : plan(std::make_shared<const run_plan>(made)),
      where(at),
      work(std::make_shared<Work>(*plan, where)),
      core(plan, where, port, stage_work_of(work),
           std::make_shared<stage_meetings>(*plan, where, meeting_memory{}, nullptr)) {
    // nop
  }

  action of(op what, int microbatch) const {
    return {what, where.direction, where.stage, microbatch};
  }
  tensor_header header(int microbatch) const {
    return {.step = 0,
            .microbatch = microbatch,
            .pipeline = 0,
            .stage = where.stage,
            .samples = 1,
            .values = 0,
            .version = 0};
  }
  void give(int microbatch) { core.receive(activation{header(microbatch), {}}); }
  void give_gradient(int microbatch) { core.receive(gradient{header(microbatch), {}}); }
  void give_updated() {
    core.receive(mail::meeting_message{
      {role::stage, where}, meeting_kind::directions, mail::updated{}});
  }

  /// Sends an input to the stage, and runs the forward.
  void forward(int microbatch) {
    give(microbatch);
    run(op::forward, microbatch);
  }

  /// Grants an action without meetings, and runs the action; returns all requests.
  std::vector<std::string> run(op what, int microbatch) {
    core.run(of(what, microbatch));
    port.run_work(core);
    return port.news();
  }

  std::shared_ptr<const run_plan> plan;
  position where;
  written_port port;
  std::shared_ptr<Work> work;
  stage_core core;
};

} // namespace tiny
