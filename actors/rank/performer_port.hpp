// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "kernels/device.hpp"
#include "messaging/mail/meeting_messages.hpp"
#include "messaging/record.hpp"

#include <vector>

namespace troupe {

/// The devices that a performer uses. Not owned; all outlive the performer.
struct performer_devices {
  /// The device of the performer's rank. An optimizer shard has one device for each
  /// direction, in order. A parameter server has a device of its own.
  std::vector<device*> computers;
  /// Runs the sums of meetings; null if meetings compute sums themselves.
  device* sums = nullptr;
};

/// The requests of a performer's core. An actor (actor_port) turns each request into a
/// message or into work for a device; a test records each. The direction of an action
/// selects the rank whose scheduler and device receive the request.
class performer_port {
public:
  virtual ~performer_port() = default;

  // Each function sends the message of that name to the scheduler of the action's rank.
  virtual void arrived(const action& a) = 0;
  virtual void paused(const measured_action& so_far) = 0;
  virtual void done(const measured_action& measured) = 0;

  /// Gives work to the device of the action's rank. When the work has ended, the
  /// performer receives `ended` with this action.
  virtual void compute(work device_work, const action& a) = 0;

  /// Gives a sum to the device that the request names, or else to the device that runs
  /// the rank's sums. When the sum has ended, the performer receives `mail::sum_over`.
  /// \pre the request names a device, or `performer_devices::sums` is not null
  virtual void sum(requested_sum request) = 0;

  /// Sends a message to another performer.
  virtual void send(mail::meeting_message message) = 0;

  /// Sends the messages in order.
  void send_all(meeting_messages messages) {
    for (auto& message : messages)
      send(std::move(message));
  }
};

} // namespace troupe
