// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/experts/expert_work.hpp"
#include "actors/plan/run_plan.hpp"
#include "actors/rank/performer_core.hpp"
#include "actors/rank/performer_port.hpp"
#include "messaging/mail/control.hpp"
#include "messaging/mail/turns.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// An expert without its mailbox: gathers the rows of an action from all data replicas
/// that it serves, computes when its scheduler grants that, and answers each.
class expert_core : public performer_core {
public:
  /// \param expert in the network's list \param port outlives it
  expert_core(std::shared_ptr<const run_plan> plan, position where, int expert,
              performer_port& port, std::shared_ptr<expert_work> work);

  const std::string& name() const { return name_; }

  /// Rows of one source. With the last ones the expert arrives; if there is nothing to
  /// compute, it answers at once.
  /// \throws std::logic_error if a source sends twice, or of another action than others
  void take(mail::letter what) override;

  void go(const action& a) override;
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
  int expert_;   // in the network's list
  int in_stage_; // among the experts of its stage
  performer_port* port_;
  std::int64_t width_; // of a row
  std::shared_ptr<expert_work> work_;
  std::vector<std::optional<mail::rows_to_expert>> inbox_; // by source
  rows_by_source rows_;                                    // when all are here
};

} // namespace troupe
