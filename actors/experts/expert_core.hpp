// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/experts/expert_work.hpp"
#include "actors/rank/performer_core.hpp"
#include "actors/rank/performer_port.hpp"
#include "messaging/mail/control.hpp"
#include "messaging/mail/turns.hpp"
#include "plan/run_plan.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// An expert of a mixture-of-experts layer, without actor code. An action's rows come
/// from all data replicas that the expert serves. The expert computes when the
/// scheduler grants the action, and answers each data replica.
class expert_core : public performer_core {
public:
  /// \param where stage on whose rank the expert runs
  /// \param expert index in the network's list of experts
  /// \param port outlives this object
  expert_core(std::shared_ptr<const run_plan> plan, position where, int expert,
              performer_port& port, std::shared_ptr<expert_work> work);

  const std::string& name() const { return name_; }

  /// Handles the rows of one source (a data replica). The last source's rows make the
  /// expert's action arrive at the scheduler. But if no source sent rows, and no
  /// gradients have to be set to 0, the expert answers immediately.
  /// \throws std::logic_error if a source sends twice before all sources have sent, or
  /// if sources send rows of different actions
  void receive(mail::meeting_message message) override;

  void run(const action& a) override;
  void ended(const mail::ended& e) override;

  mail::waiting_for explain() const override;

private:
  position source(int number) const;
  bool has_all(const mail::rows_to_expert& last);
  bool idle() const;
  void answer();

  std::shared_ptr<const run_plan> plan_;
  position where_;
  std::string name_;
  int expert_;   // index in the network's list
  int in_stage_; // index among the experts of the stage
  performer_port* port_;
  std::int64_t width_; // values of a row
  std::shared_ptr<expert_work> work_;
  std::vector<std::optional<mail::rows_to_expert>> received_rows_; // by source
  rows_by_source rows_; // of the current action; empty until all sources have sent
};

} // namespace troupe
