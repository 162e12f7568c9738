// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/control.hpp"
#include "messaging/mail/meeting_messages.hpp"
#include "messaging/mail/turns.hpp"

namespace troupe {

/// An optimizer shard, an expert or a parameter server without a mailbox. The core
/// requests messages and device work through a `performer_port`. One thread at a time
/// calls the core: the actor's. The functions of the core's work run on device threads.
class performer_core {
public:
  virtual ~performer_core() = default;

  /// Handles a message of another performer, or the end of a sum on a device.
  virtual void receive(mail::meeting_message message) = 0;

  /// The scheduler has granted an action, for the first time or again.
  virtual void run(const action& a) = 0;

  /// The work that the core gave to a device has ended, without failure.
  virtual void ended(const mail::ended& e) = 0;

  /// Returns the input that the core waits for; `input` is empty if there is none.
  virtual mail::waiting_for explain() const = 0;
};

} // namespace troupe
