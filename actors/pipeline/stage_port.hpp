// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/rank/performer_port.hpp"
#include "messaging/mail/control.hpp"
#include "messaging/mail/reports.hpp"
#include "messaging/mail/tensors.hpp"

#include <functional>
#include <memory>

namespace troupe {

/// The requests of a stage's core, in addition to the requests of every performer. An
/// actor sends each request as a message; a test records each request.
class stage_port : public performer_port {
public:
  /// True if the stage's device copies parameters, for evaluations and proofs, while
  /// passes run. If false, the stage's thread copies immediately. In virtual time such
  /// a copy takes no time, so that no evaluation changes virtual time.
  virtual bool copies_aside() const = 0;

  virtual void demand() = 0; ///< Requests one microbatch from the data source.
  virtual void send_on(activation message) = 0; ///< Sends to the next stage.
  virtual void send_back(gradient message) = 0; ///< Sends to the previous stage.

  /// Notifies the optimizer shard of a bucket with complete gradients; may be called
  /// from a device's callback, on any thread.
  using bucket_notifier = std::function<void(const mail::bucket_ready&)>;
  /// Returns a notifier for the buckets of this stage.
  virtual bucket_notifier notifier() = 0;

  /// Returns the function that notifies the stage of a pass's launch, from a device's
  /// callback.
  virtual on_launched launch_notifier(const action& a) = 0;

  // Each function sends a report: a snapshot to the coordinator, all others to the
  // recorder.
  virtual void report(const mail::microbatch_loss& loss) = 0;
  virtual void report(mail::expert_load load) = 0;
  virtual void report(const mail::update_part& part) = 0;
  virtual void report(mail::version_made version) = 0;
  virtual void report(mail::snapshot copy) = 0;
};

} // namespace troupe
