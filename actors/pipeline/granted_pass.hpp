// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/pipeline/action_costs.hpp"
#include "actors/pipeline/stage_meetings.hpp"
#include "actors/pipeline/stage_port.hpp"
#include "actors/pipeline/stage_updates.hpp"
#include "actors/pipeline/stage_work.hpp"
#include "actors/rank/action_run.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// The parts of a stage that all passes of the stage use. `port` outlives the parts.
struct stage_context {
  std::shared_ptr<const run_plan> plan;
  position where;
  stage_port& port;
  stage_work work;
  std::shared_ptr<stage_meetings> meetings;
  stage_version_ledger ledger{plan->sch, plan->dims, where.hosted()};
  action_costs costs{*plan, where, meetings->stage_share()};
  stage_updates updates{*plan, where, port, work, *meetings, ledger};

  bool is_first() const { return where.stage == 0; }
  bool is_last() const { return where.stage == plan->dims.stages - 1; }
};

/// A pass of a stage, from the scheduler's grant to the pass's end. An object serves
/// one pass at a time, and is reused for later passes.
class granted_pass {
public:
  /// \param stage outlives this object
  explicit granted_pass(stage_context& stage);
  granted_pass(const granted_pass&) = delete; // the run refers to the facts
  granted_pass& operator=(const granted_pass&) = delete;

  /// Begins a pass: the version ledger and the updates count the pass. No piece runs
  /// before the call of resume().
  /// \pre !under_way()
  /// \param turn position of the pass in the device's order; may be no_turn
  /// \param pair the second action of a pair, if `a` is the first
  /// \param input_writer the GPU work that writes the pass's input; null if the input
  /// is complete
  void begin(const action& a, std::int64_t turn, const std::optional<action>& pair,
             std::shared_ptr<gpu_completion> input_writer);

  // The functions of action_run with the same names, for this pass.
  void resume(std::int64_t turn) { run_.resume(turn); }
  void poll() { run_.poll(); }
  bool under_way() const { return run_.under_way(); }
  std::optional<mail::waiting_for> explain(const std::string& name) const {
    return run_.explain(name);
  }

  /// Sends the output to a neighbour, if the pass has an output that leaves at launch.
  /// \param end the GPU work that writes the output
  /// \pre the pass has not ended
  void launched(std::shared_ptr<gpu_completion> end);

  /// Handles the end of the pass's work on the device. Returns the whole pass with its
  /// times, if no pieces are left: then buffers are freed, and the output was sent.
  /// \throws std::runtime_error if a loss is not finite
  std::optional<measured_action> ended(const mail::ended& e);

  bool runs(const action& a) const { return under_way() && run_.current_action() == a; }

  /// Position of the current or last pass in the device's order.
  std::int64_t turn() const { return turn_; }

private:
  action_callbacks callbacks_of(const action& a, bool reports_buckets);
  void send(buffer payload, std::shared_ptr<gpu_completion> writer = {});
  void end_forward(nanoseconds now);
  void end_backward();

  stage_context& stage_;
  action_run run_;
  std::int64_t turn_ = no_turn;
  measured_action facts_{}; // the pass as granted, without times
};

} // namespace troupe
