// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_stage_core.hpp"
#include "actors/mail/send.hpp"
#include "actors/run/run_status.hpp"
#include "messaging/mail/control.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <string>

namespace troupe {

// The actors of an inference: stages that run forwards, and the client at both ends of
// the pipeline.

namespace mail {

/// Actor to its lower neighbour: the actor has consumed a portion.
struct free_above {};

/// Device to stage: a forward has ended.
struct forward_ended {
  std::exception_ptr failure; ///< The exception that the forward threw, or null.
};

} // namespace mail

/// A stage of an inference, or the client at both ends.
using inference_actor =
  caf::typed_actor<caf::reacts_to<portion>, caf::reacts_to<mail::free_above>,
                   caf::reacts_to<mail::forward_ended>, caf::reacts_to<mail::explain>,
                   caf::reacts_to<struct inference_neighbours>>;

/// Wires an actor to both neighbours, before portions come. The message makes a client
/// start.
struct inference_neighbours {
  inference_actor below; ///< The neighbour that sends portions to this actor.
  inference_actor above; ///< The neighbour that receives portions from this actor.
};

/// Objects that the actors of an inference share. All objects outlive the actors.
struct inference_context {
  message_meter* meter;
  std::shared_ptr<run_status> status;
};

struct inference_stage_state {
  std::string name = "stage";
  inference_context shared;
  device* computer = nullptr;
  std::unique_ptr<inference_stage_core> core;
  inference_neighbours peers;
};

/// Behavior of a stage, which owns some layers. Runs each portion through these layers
/// and sends the result to the upper neighbour. An exception ends the actor and is
/// posted to the run status as a failure.
/// \param computer outlives the actor
/// \param stage index of the stage, from 0
/// \param stages number of stages of the pipeline
inference_actor::behavior_type
inference_stage(inference_actor::stateful_pointer<inference_stage_state> self,
                inference_context shared, device* computer, int stage, int stages,
                std::shared_ptr<inference_work> work);

struct inference_client_state {
  std::string name = "client";
  inference_context shared;
  inference_client* client = nullptr;
  occupation* seen = nullptr;
  int capacity_above = portions_between; ///< Portions that stage 0 can still receive.
  inference_neighbours peers;
};

/// Behavior of the client. Sends portions to the first stage whenever that stage has
/// capacity, and receives the results of the last stage. Posts the end to the run
/// status when the client has all results. An exception ends the actor and is posted as
/// a failure.
/// \param client outlives the actor
/// \param seen the client's current operation, for the stall watchdog; outlives the
/// actor
inference_actor::behavior_type
inference_client_actor(inference_actor::stateful_pointer<inference_client_state> self,
                       inference_context shared, inference_client* client,
                       occupation* seen, int stages);

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::portion)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::inference_neighbours)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::free_above)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::forward_ended)
