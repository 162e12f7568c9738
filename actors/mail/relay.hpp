// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// For whoever brings actors of their own: the one public header that knows CAF. Compile
// with the CAF that troupe was built with.

#include "messaging/mail/tensors.hpp"

#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <functional>

namespace troupe {

/// Whoever takes what stages send each other: the next stage activations, the previous
/// one gradients.
using neighbour_actor =
  caf::typed_actor<caf::reacts_to<activation>, caf::reacts_to<gradient>>;

/// Where an actor of one's own stands: between two neighbouring stages of a pipeline.
struct relay_place {
  int replica; ///< The pipeline: data replica times directions, plus direction.
  int stage;   ///< The lower one. Activations come from there, gradients go there.
  neighbour_actor below; ///< That stage,
  neighbour_actor above; ///< and the next one.
};

/// What an actor of one's own should be, or a stateful_actor<.., relay>: whatever its
/// handlers throw fails the run with its text. Of CAF's other actors that text is
/// printed on the standard error stream alone.
class relay : public neighbour_actor::base {
public:
  explicit relay(caf::actor_config& config);
};

/// Actors of one's own between the stages of a run.
struct own_relays {
  /// Spawns the actor that stands in a place. It gets each activation and each gradient
  /// that one of the two stages sends the other, and sends on, by CAF's means, what the
  /// other one is to have: every message once, with its header as it was, those of one
  /// kind in their order, and with as many values. The payload is the actor's own
  /// meanwhile: it may write to it, from any thread. It belongs to a pool of the run,
  /// so no handle of it may be kept. What is sent on otherwise fails the run, with the
  /// relay's place and what it was given.
  ///
  /// The actor ends when the run does: one that quits before fails the run. So does one
  /// whose handler throws, with its place and text (see relay). It is no rank, and its
  /// time is nobody's: in virtual time it takes none. In a system that is the run's own
  /// it cannot set timeouts. Where a model stores bf16, a value of a payload is two of
  /// them.
  ///
  /// Called on the thread that waits for the run, before the first message. What it
  /// throws, or makes nothing, fails the run with its text and place.
  std::function<neighbour_actor(caf::actor_system& system, const relay_place& where)>
    make;
};

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::activation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::gradient)
