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

/// One end of an edge: of two stages on GPUs of their own, the first of which gives the
/// second one tensors. There are as many edges as there are directions.
struct edge_end {
  gpu_group* of = nullptr; ///< Null: messages carry what goes there.
  int calls = 0;           ///< That were given, or taken.
};

/// The edges between a stage and one of its neighbours.
struct side_edges {
  edge_end gives = {}, takes = {};
  std::shared_ptr<pool> room = {}; ///< For what is taken.
  /// The stage is given a tensor when it is to be taken, and not when it is there.
  bool at_launch = false;
};

/// Those of a stage.
struct edges_of_stage {
  side_edges below, above;
};

/// What a stage gives its neighbours by edges, and takes from them.
///
/// A message goes as it does elsewhere, but as a call without its payload:
///
///   giver                                  taker
///     │ F's kernels, and a mark              │
///     │ its edge waits for that, and sends   │
///     │ a free buffer, behind the send       │
///     │──────────── call 3 ────────────────▶ │ is it the fourth?
///     │                                      │ its edge receives, to a buffer
///     │                                      │ the message, behind that ──▶ stage
///
/// Within a process neither waits for a GPU; between nodes a tensor is given when it is
/// there, and the stage hears of it when it has been received. Calls are taken in the
/// order in which they were given. The giver's buffer goes back to its pool before the
/// call leaves, and whoever writes there next does so behind the send: so pools need no
/// more room than where two stages share them. One stage owns it, and calls it from one
/// thread at a time.
class stage_edges {
public:
  /// Told by a device's callback; may only send a message.
  using failure_teller = std::function<void(std::exception_ptr)>;
  template <class Message>
  using teller = std::function<void(Message)>;

  /// \param failed a GPU could not give or take
  stage_edges(edges_of_stage all, failure_teller failed)
    : all_(std::move(all)), failed_(std::move(failed)) {
    // nop
  }

  /// Whether there is an edge to the neighbour that takes such messages.
  template <class Message>
  bool gives() const {
    return to_taker<Message>().gives.of != nullptr;
  }

  /// \param called gets the message for the neighbour \pre gives()
  template <class Message>
  void give(Message what, teller<Message> called);

  /// \throws std::runtime_error if a GPU has not taken what the stage was told of
  void check() const;

  /// \param there gets the message for the stage \throws std::logic_error if the call
  /// is not the next one, or there is no edge
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
