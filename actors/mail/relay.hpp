// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// For users with actors of their own: the one public header that includes CAF. Compile
// with the version of CAF that troupe was built with.

#include "messaging/mail/tensors.hpp"

#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <functional>

namespace troupe {

/// Receives the tensors that stages send each other: the next stage receives
/// activations, and the previous one gradients.
using neighbour_actor =
  caf::typed_actor<caf::reacts_to<activation>, caf::reacts_to<gradient>>;

/// The place of a user's actor: between two neighbouring stages of a pipeline.
struct relay_place {
  /// Index of the pipeline: data replica times number of directions, plus direction.
  int replica;
  int stage;             ///< The lower stage: sends activations, receives gradients.
  neighbour_actor below; ///< The lower stage.
  neighbour_actor above; ///< The next stage: receives activations, sends gradients.
};

/// The base class of a user's actor. The actor derives from relay, or from a
/// stateful_actor<.., relay>. If a handler throws, the run fails with the exception's
/// text. For other actors CAF prints that text only on the standard error stream.
class relay : public neighbour_actor::base {
public:
  explicit relay(caf::actor_config& config);
};

/// User's actors between the stages of a run.
struct user_relays {
  /// Spawns the actor for a place. The actor receives each activation and each gradient
  /// that one of the two stages sends to the other. The actor must send every message
  /// on, once, to the other stage, by CAF's means. Headers stay unchanged, messages of
  /// a kind stay in order, and payloads keep the number of values. Meanwhile the actor
  /// owns the payload: the actor may write the values, from any thread. The payload
  /// belongs to a pool of the run, so the actor must not keep a handle. A message that
  /// breaks a rule fails the run, with the relay's place and the message that the relay
  /// had received.
  ///
  /// The actor ends with the run: an actor that quits before the end fails the run. A
  /// handler that throws also fails the run, with the actor's place and the exception's
  /// text (see relay). The actor is not part of any rank, and no device is charged for
  /// the actor's time: in virtual time handlers take no time. In the run's own actor
  /// system the actor cannot set timeouts. Where a model stores bf16, one value of a
  /// payload holds two bf16 values.
  ///
  /// Called once for each place, on the thread that waits for the run, before the first
  /// message. An exception, or an invalid handle, fails the run with the text and the
  /// place. `system` outlives the run's actors.
  std::function<neighbour_actor(caf::actor_system& system, const relay_place& where)>
    make;
};

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::activation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::gradient)
