// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/run_context.hpp"
#include "actors/mail/send.hpp"

#include <cstdint>
#include <utility>

// Sends tensor messages between ranks, and charges the network for the bytes.

namespace troupe {

/// A tensor message between ranks: the traffic class, the bytes, and the positions
/// whose ranks' ports carry the bytes in virtual time.
struct tensor_transfer {
  traffic kind;
  std::int64_t bytes;
  position from;
  position to;
};

namespace detail {

template <class Handle, class Message>
void ship_over_network(const run_context& shared, const tensor_transfer& route,
                       const Handle& to, Message message) {
  shared.links->send(shared.plan->rank_of(route.from), shared.plan->rank_of(route.to),
                     static_cast<double>(route.bytes),
                     [meter = shared.meter, to, attribute = std::move(message)] {
                       send_external(*meter, to, Message{attribute});
                     });
}

inline bool takes_time(const run_context& shared) {
  return shared.links != nullptr && !shared.links->is_free();
}

} // namespace detail

/// Sends a tensor message from inside an actor, and counts the bytes. In virtual time
/// the message arrives when the network has carried the bytes; immediately if no
/// message takes time in the plan's network.
template <class Self, class Handle, class Message>
void send_tensor(Self* self, const run_context& shared, const tensor_transfer& route,
                 const Handle& to, Message message) {
  shared.meter->moved(route.kind, route.bytes);
  if (detail::takes_time(shared))
    detail::ship_over_network(shared, route, to, std::move(message));
  else
    send_from(self, *shared.meter, to, std::move(message));
}

/// Sends a tensor message from outside an actor, as from a device's callback, and
/// counts the bytes. In virtual time the message arrives when the network has carried
/// the bytes; immediately if no message takes time in the plan's network.
template <class Handle, class Message>
void send_tensor(const run_context& shared, const tensor_transfer& route,
                 const Handle& to, Message message) {
  shared.meter->moved(route.kind, route.bytes);
  if (detail::takes_time(shared))
    detail::ship_over_network(shared, route, to, std::move(message));
  else
    send_external(*shared.meter, to, std::move(message));
}

} // namespace troupe
