// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/rank/performer_port.hpp"
#include "messaging/mail/control.hpp"
#include "messaging/mail/reports.hpp"
#include "messaging/mail/tensors.hpp"

#include <functional>
#include <memory>

namespace troupe {

/// What a stage's core can ask for besides what every performer can.
class stage_port : public performer_port {
public:
  /// Whether its device makes copies beside passes; else they are made at once, and
  /// take no time, so that no evaluation changes what virtual time does.
  virtual bool copies_aside() const = 0;

  virtual void demand() = 0; ///< One more microbatch, from the data source.
  virtual void send_on(activation what) = 0; ///< To the next stage.
  virtual void send_back(gradient what) = 0; ///< To the previous one.

  /// How the optimizer shard hears of a bucket, also from a device's callback.
  using bucket_teller = std::function<void(const mail::bucket_ready&)>;
  virtual bucket_teller teller() = 0;

  /// How the stage hears that a pass has been launched, from a device's callback.
  virtual on_launched launch_teller(const action& a) = 0;

  virtual void report(const mail::microbatch_loss& loss) = 0;
  virtual void report(mail::expert_load load) = 0;
  virtual void report(mail::version_made version) = 0;
  virtual void report(mail::snapshot copy) = 0;
};

} // namespace troupe
