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

/// One end of a peer channel between two stages on different GPUs. A channel moves
/// tensors one way, from its first stage to its second; two neighbours have two
/// channels.
struct peer_channel_end {
  /// The pair of GPUs, which outlives this end; null if messages carry payloads.
  gpu_group* group = nullptr;
  int calls = 0; ///< Number of calls that this end has sent, or received, so far.
};

/// The peer channels between a stage and one neighbour.
struct peer_channels {
  peer_channel_end outgoing = {}, incoming = {};
  /// Pool of buffers for received tensors; not used without `incoming.group`.
  std::shared_ptr<pool> buffers = {};
  /// True if the stage receives the message with payload at the launch of the GPU
  /// receive; false if at the end of the receive.
  bool at_launch = false;
};

/// The peer channels of a stage: with the previous stage (below), and with the next
/// stage (above).
struct channels_of_stage {
  peer_channels below, above;
};

/// Moves activations and gradients between the GPUs of a stage and of neighbours, over
/// peer channels.
///
/// A message is sent like any other, but as a call without payload:
///
///   sender                                 receiver
///     │ F's kernels, then an event           │
///     │ channel: wait for the event, send    │
///     │ buffer: back to its pool             │
///     │──────────── call 3 ────────────────▶ │ is call 3 the next one?
///     │                                      │ channel: receive into a buffer
///     │                                      │ message (`at_launch`) ──▶ stage
///
/// With `at_launch`, which needs both stages in one process, neither actor waits for a
/// GPU. Without `at_launch` the sender sends a finished tensor, and the receiving stage
/// gets the message after the receive. Calls are received in the order of sending. The
/// sender's buffer returns to its pool before the call leaves; the next write to this
/// buffer waits for the send. So pools need no more buffers than a pool that two stages
/// share. One stage owns the object, and calls every function from one thread at a
/// time.
class stage_channels {
public:
  /// Called from a device's callback, on the device's thread; may only send a message.
  using failure_handler = std::function<void(std::exception_ptr)>;
  /// Receives a call, or a message with payload, on the device's thread.
  template <class Message>
  using message_handler = std::function<void(Message)>;

  /// \param failed called on a thread of the GPUs' device, with the error of a send or
  /// receive; objects to which the function refers outlive the device's work
  stage_channels(channels_of_stage channels, failure_handler failed)
    : channels_(std::move(channels)), failed_(std::move(failed)) {
    // nop
  }

  /// True if a peer channel leads to the neighbour that receives messages of type
  /// `Message`.
  template <class Message>
  bool can_send() const {
    return receiver_channels<Message>().outgoing.group != nullptr;
  }

  /// Enqueues the GPU's send of the payload.
  /// \param on_call receives the call to send to the neighbour, on the device's thread,
  /// when the send has been launched
  /// \pre can_send<Message>()
  template <class Message>
  void send(Message message, message_handler<Message> on_call);

  /// Checks the GPU receives whose messages the stage got at launch.
  /// \throws std::runtime_error if one of these receives failed
  void check() const;

  /// Enqueues the GPU's receive of the payload that a call announces.
  /// \param on_received receives the message with payload for the stage, on the
  /// device's thread, at the launch or the end of the receive (`at_launch`)
  /// \throws std::logic_error if the call is not the next one, no channel exists, or
  /// the pool has no free buffer
  template <class Message>
  void receive(const Message& call, message_handler<Message> on_received);

private:
  /// True for activations, which go to the next stage; gradients go to the previous
  /// one.
  template <class Message>
  static constexpr bool goes_up = std::same_as<Message, activation>;

  template <class Message>
  const peer_channels& receiver_channels() const {
    return goes_up<Message> ? channels_.above : channels_.below;
  }
  template <class Message>
  peer_channels& receiver_channels() {
    return goes_up<Message> ? channels_.above : channels_.below;
  }
  template <class Message>
  peer_channels& sender_channels() {
    return goes_up<Message> ? channels_.below : channels_.above;
  }

  channels_of_stage channels_;
  failure_handler failed_;
};

} // namespace troupe
