// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "messaging/group_calls.hpp"
#include "messaging/mail/tensors.hpp"

#include <concepts>
#include <exception>
#include <functional>
#include <memory>

namespace troupe {

/// One end of a peer channel between two stages on different GPUs. The channel's
/// first stage sends tensors to the second. Each way between two neighbours has a
/// channel.
struct edge_end {
  gpu_group* of = nullptr; ///< Null: messages carry the payload.
  int calls = 0;           ///< Number of calls sent, or received.
};

/// The peer channels between a stage and one neighbour.
struct side_edges {
  edge_end gives = {}, takes = {};
  std::shared_ptr<pool> room = {}; ///< Pool of buffers for received tensors.
  /// The stage receives a message when its GPU receive is launched, not when the
  /// receive ends.
  bool at_launch = false;
};

/// The peer channels of a stage, to the stage below and to the one above.
struct edges_of_stage {
  side_edges below, above;
};

/// Moves activations and gradients between the GPUs of a stage and of neighbours, over
/// peer channels.
///
/// A message is sent like any other, but as a call without payload:
///
///   sender                                 receiver
///     │ F's kernels, then an event           │
///     │ channel: wait for the event, send    │
///     │ buffer: free after the send          │
///     │──────────── call 3 ────────────────▶ │ is call 3 the next one?
///     │                                      │ channel: receive into a buffer
///     │                                      │ message, after the receive ──▶ stage
///
/// Within a process neither actor waits for a GPU. Between nodes the sender sends a
/// finished tensor, and the receiving stage gets the message after the receive. Calls
/// are received in the order of sending. The sender's buffer returns to its pool before
/// the call leaves; the next write to this buffer waits for the send. So pools need no
/// more buffers than a pool that two stages share. One stage owns the object, and calls
/// every function from one thread at a time.
class stage_edges {
public:
  /// Called from a device's callback, on the device's thread; may only send a message.
  using failure_teller = std::function<void(std::exception_ptr)>;
  template <class Message>
  using teller = std::function<void(Message)>;

  /// \param failed is called with the error when a GPU's send or receive fails
  stage_edges(edges_of_stage all, failure_teller failed)
    : all_(std::move(all)), failed_(std::move(failed)) {
    // nop
  }

  /// Whether a peer channel leads to the neighbour that receives such messages.
  template <class Message>
  bool gives() const {
    return to_taker<Message>().gives.of != nullptr;
  }

  /// Enqueues the GPU's send of the payload.
  /// \param on_call gets the call to send to the neighbour, on the device's thread,
  /// once the send is launched
  /// \pre can_send()
  template <class Message>
  void give(Message what, teller<Message> called);

  /// \throws std::runtime_error if a receive failed whose message the stage already has
  void check() const;

  /// Enqueues the GPU's receive of the payload that a call announces.
  /// \param on_received gets the message with payload for the stage, on the device's
  /// thread
  /// \throws std::logic_error if the call is not the next one, or no channel exists
  template <class Message>
  void take(const Message& call, teller<Message> there);

private:
  /// Activations go up, and gradients down.
  template <class Message>
  static constexpr bool goes_up = std::same_as<Message, activation>;

  template <class Message>
  const side_edges& to_taker() const {
    return goes_up<Message> ? all_.above : all_.below;
  }
  template <class Message>
  side_edges& to_taker() {
    return goes_up<Message> ? all_.above : all_.below;
  }
  template <class Message>
  side_edges& to_giver() {
    return goes_up<Message> ? all_.below : all_.above;
  }

  edges_of_stage all_;
  failure_teller failed_;
};

} // namespace troupe
