// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/pipeline/stage_meetings.hpp"
#include "actors/pipeline/stage_port.hpp"
#include "actors/pipeline/stage_updates.hpp"
#include "actors/pipeline/stage_work.hpp"
#include "actors/rank/conversation.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// A stage without its mailbox: which actions its inputs allow, what it runs when its
/// scheduler grants one, and who hears of its end.
class stage_core {
public:
  /// \param port outlives it; nothing is asked of it before start()
  stage_core(std::shared_ptr<const run_plan> plan, position where, stage_port& port,
             std::shared_ptr<stage_work> work,
             std::shared_ptr<stage_meetings> meetings);

  const std::string& name() const { return name_; }

  /// Everybody is there: the first stage asks for data.
  void start() { is_first() ? port_->demand() : void(); }

  // An input has come: the forward or backward that has all of its inputs arrives.
  void take(const activation& input);
  void take(const labels& input);
  void take(const gradient& input);

  /// A letter of a meeting, or from the optimizer shard: the version is there.
  void take(mail::letter what);

  /// The scheduler has granted an action, for the first time or again. A pass may be
  /// granted while another is under way: the books advance in the order of grants.
  /// \param turn of the pass on its device
  /// \param pair of the first of a pair: the second
  void go(const action& a, std::int64_t turn = no_turn,
          const std::optional<action>& pair = {});

  /// A pass that makes something for a neighbour on a GPU has been launched: that
  /// leaves now, and not when the pass has ended.
  void launched(const mail::launched& l);

  /// The work that it gave its device has ended.
  /// \throws std::runtime_error if a loss is not finite
  void ended(const mail::ended& e);

  mail::collected collect() const { return updates_.collect(); }
  std::vector<aged_version> versions() const { return updates_.versions(); }

  mail::waiting_for explain() const;

private:
  /// A pass that the scheduler has granted.
  struct granted_pass {
    conversation talk;
    std::int64_t turn;     ///< On its device.
    measured_action facts; ///< As it was granted, without its times.
  };

  bool is_first() const { return where_.stage == 0; }
  bool is_last() const { return where_.stage == plan_->dims.stages - 1; }
  action action_of(op what, int microbatch) const {
    return {what, where_.direction, where_.stage, microbatch};
  }
  void arrive_if_possible(int microbatch);
  granted_pass* find(const action& a);
  granted_pass& free_place();
  bool runs_a_pass() const;
  granted_pass& begin(const action& a, std::int64_t turn,
                      const std::optional<action>& pair);
  double recomputed_share(int stage) const;
  double part_in_last_segment(int stage) const;
  double size_of(const action& a) const;
  double operations_of_sample(int stage, std::int64_t length) const;
  double operations_of(const action& a) const;
  std::int64_t values_of_sample(int stage, int microbatch);
  charge cost_of(const action& a, const std::optional<action>& pair) const;
  void send(const measured_action& pass, buffer payload,
            std::shared_ptr<launched_end> made = {});
  void end_forward(const granted_pass& pass, nanoseconds now);
  void end_backward(const granted_pass& pass);
  void end_update(const mail::updated& last);
  void tell_if_updated();

  std::shared_ptr<const run_plan> plan_;
  position where_;
  std::string name_;
  stage_port* port_;
  stage_ledger books_;
  std::shared_ptr<stage_work> work_;
  std::shared_ptr<stage_meetings> meetings_;
  std::vector<granted_pass> passes_; // no more than the device takes at once
  stage_updates updates_;
  std::vector<int> unversioned_; // forwards whose weights are not made yet
  // Works that GPUs may be at, by the pass that reads what they write.
  std::map<std::pair<op, int>, std::shared_ptr<launched_end>> made_;
  mutable std::map<int, double> recomputed_shares_; // by stage
  // By stage and length: of other stages of the rank, and of what a stage gets.
  mutable std::map<std::pair<int, std::int64_t>, double> operations_of_sample_;
  std::map<std::pair<int, std::int64_t>, std::int64_t> values_of_sample_;
};

} // namespace troupe
