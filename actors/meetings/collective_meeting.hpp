// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "messaging/collectives_under_way.hpp"
#include "messaging/position.hpp"

#include <utility>
#include <vector>

namespace troupe {

struct run_plan;

/// A meeting whose steps are collectives of a group of stages or optimizer shards. A
/// derived class describes the members, and begins the collectives.
class collective_meeting : public meeting {
public:
  meeting_messages receive(mail::meeting_message received) final;
  std::optional<missing_peer> waits_for() const final;
  void yield_sums(const sum_requester& request) final;
  void exchange_by(const group_finder& groups, const sum_requester& request) final;

protected:
  /// \param plan outlives the meeting
  collective_meeting(const run_plan& plan, position where, meeting_kind kind)
    : plan_(&plan), where_(where), kind_(kind) {
    // nop
  }

  /// Begins a collective over the arrays in `memory`. Returns the messages to send.
  meeting_messages start(const collective_part& part, const collective_memory& memory);

  const run_plan& plan() const { return *plan_; }
  position where() const { return where_; }

  /// True if no collective is under way.
  bool none() const { return under_way_.none(); }

  /// True if GPUs exchange some of the arrays.
  bool has_gpu_groups() const { return has_gpu_groups_; }

private:
  /// The position of a collective's member, by the number in the collective.
  virtual position member_at(int instance, int member) const = 0;

  /// The kind of tensors in a collective's messages.
  virtual traffic traffic_of(int instance) const = 0;

  /// The input of a collective that `sender` has not sent.
  virtual missing_peer missing_from(int instance, position sender) const;

  /// The distances between members, in data replicas. Collective `instance` has entry
  /// `instance` modulo the number of entries.
  virtual std::vector<int> strides() const { return {1}; }

  /// Called when a collective has ended, before the messages that start() or receive()
  /// returns are sent.
  virtual void ended(int /*instance*/) {}

  meeting_messages sent(int instance, std::vector<collective_message> out) const;

  const run_plan* plan_;
  position where_;
  meeting_kind kind_;
  bool has_gpu_groups_ = false;
  collectives_under_way under_way_;
};

} // namespace troupe
