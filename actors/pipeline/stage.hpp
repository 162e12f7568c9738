// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/pipeline/stage_channels.hpp"
#include "actors/pipeline/stage_core.hpp"
#include "actors/rank/actor_port.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <string>

namespace troupe {

/// The port of a stage that is an actor: turns the core's requests into messages to
/// other actors. Runs on the stage actor's thread; the callbacks that functions return
/// may run on any thread.
class stage_actor_port : public actor_port<stage_actor, stage_port> {
public:
  /// \param channels of the stage; GPU groups to which the channels refer outlive this
  /// object
  stage_actor_port(self_pointer self, run_context shared, performer me,
                   performer_devices devices, channels_of_stage channels);

  bool copies_aside() const override { return computers_.front()->depth() > 1; }
  void demand() override;
  void send_on(activation message) override;
  void send_back(gradient message) override;
  bucket_notifier notifier() override;
  on_launched launch_notifier(const action& a) override;
  void report(const mail::microbatch_loss& loss) override;
  void report(mail::expert_load load) override;
  void report(const mail::update_part& part) override;
  void report(mail::version_made version) override;
  void report(mail::snapshot copy) override;

  /// Both functions check a received tensor against the ledgers of the user's relays.
  /// No effect in a run without relays, and for the input from the data source.
  /// \throws std::runtime_error if a relay forwarded a tensor that differs from the
  /// tensor that the relay received, or sent a tensor back
  void check(const activation& message) const;
  void check(const gradient& message) const;

  /// Starts the GPU receive that a call (a message without payload) announces. The
  /// actor receives the message with its payload afterwards.
  /// \throws std::logic_error if the call is not the next one, no peer channel exists,
  /// or the pool has no free buffer
  template <class Message>
  void receive(const Message& call);

  /// Checks the GPU receives whose messages the stage got at launch. To be called
  /// before the stage handles the end of a pass, which may have read a buffer whose
  /// receive failed.
  /// \throws std::runtime_error if a receive failed
  void check_channels() const { channels_.check(); }

private:
  template <class Message>
  void send_to_neighbour(Message message);
  template <class Message>
  void check_relayed(int step, const Message& message) const;

  stage_channels channels_;
};

struct stage_state {
  std::string name = "stage";
  std::unique_ptr<stage_actor_port> port;
  std::shared_ptr<stage_core> core;
};

/// The actor of one direction and tensor shard of one stage, in one data replica. The
/// stage holds parameters and activations, and computes each pass that the scheduler
/// grants; the optimizer shard makes the updates. Activations go to the next stage and
/// gradients to the previous one.
/// \param saver null if the stage has nothing to save
/// \param channels peer channels to neighbours; empty where messages carry the payload
stage_actor::behavior_type stage(stage_actor::stateful_pointer<stage_state> self,
                                 run_context shared, performer_devices devices,
                                 position where, stage_work work,
                                 std::shared_ptr<stage_meetings> meetings,
                                 std::shared_ptr<stage_saver> saver,
                                 channels_of_stage channels);

} // namespace troupe
