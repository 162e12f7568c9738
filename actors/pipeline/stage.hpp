// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/pipeline/stage_core.hpp"
#include "actors/pipeline/stage_edges.hpp"
#include "actors/rank/actor_port.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <string>

namespace troupe {

/// What a stage's core asks for, as mail.
class stage_actor_port : public actor_port<stage_actor, stage_port> {
public:
  stage_actor_port(self_pointer self, props shared, performer me,
                   performer_devices devices, edges_of_stage edges);

  bool copies_aside() const override { return computers_.front()->depth() > 1; }
  void demand() override;
  void send_on(activation what) override;
  void send_back(gradient what) override;
  bucket_teller teller() override;
  on_launched launch_teller(const action& a) override;
  void report(const mail::microbatch_loss& loss) override;
  void report(mail::expert_load load) override;
  void report(mail::version_made version) override;
  void report(mail::snapshot copy) override;

  /// A tensor has come. \throws std::runtime_error if a relay sent it on that was given
  /// another one
  void check(const activation& what) const;
  void check(const gradient& what) const;

  /// A message that says that a GPU is to take its payload: the stage gets it again
  /// when that is so. \throws std::logic_error if the GPU cannot
  template <class Message>
  void take(const Message& call);

  /// Before the end of a pass counts: it may have read what no GPU has taken.
  /// \throws std::runtime_error if so
  void check_edges() const { edges_.check(); }

private:
  template <class Message>
  void send_tensor(Message what);
  template <class Message>
  void check_came(int step, const Message& what) const;

  stage_edges edges_;
};

struct stage_state {
  std::string name = "stage";
  std::unique_ptr<stage_actor_port> port;
  std::shared_ptr<stage_core> core;
};

/// One direction and tensor shard of one stage: holds its parameters and activations,
/// computes when its scheduler says so, and sends what comes out to its neighbours.
/// \param saver null if it has nothing to save \param edges to neighbours, if there are
/// any
stage_actor::behavior_type stage(stage_actor::stateful_pointer<stage_state> self,
                                 props shared, performer_devices devices,
                                 position where, std::shared_ptr<stage_work> work,
                                 std::shared_ptr<stage_meetings> meetings,
                                 std::shared_ptr<stage_saver> saver,
                                 edges_of_stage edges);

} // namespace troupe
