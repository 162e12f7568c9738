// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "kernels/device.hpp"
#include "messaging/mail/letters.hpp"
#include "messaging/record.hpp"

#include <vector>

namespace troupe {

/// Who works for a performer.
struct performer_devices {
  /// Of its rank; of an optimizer shard those of all directions' ranks.
  std::vector<device*> computers;
  device* sums = nullptr; ///< Of its rank; null: meetings do sums themselves.
};

/// What the core of a performer can ask for: its actor sends it, a test writes it down.
/// Actions say on whose rank: that of their direction.
class performer_port {
public:
  virtual ~performer_port() = default;

  // To the scheduler.
  virtual void arrived(const action& a) = 0;
  virtual void paused(const measured_action& so_far) = 0;
  virtual void done(const measured_action& all) = 0;

  /// To the device: the performer hears `ended` with this action when it has.
  virtual void compute(work what, const action& a) = 0;

  /// To whoever does its rank's sums: the performer gets a letter when this one is
  /// over.
  virtual void sum(asked_sum what) = 0;

  /// To another performer.
  virtual void send(mail::letter what) = 0;

  void send_all(letters all) {
    for (auto& one : all)
      send(std::move(one));
  }
};

} // namespace troupe
