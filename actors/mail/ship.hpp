// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/mail.hpp"
#include "actors/mail/props.hpp"

#include <cstdint>
#include <utility>

// Sends tensor messages between ranks, and charges the network for the bytes.

namespace troupe {

/// A tensor message between ranks: the traffic class of the bytes, and the two ranks
/// whose ports carry the bytes in virtual time.
struct shipment {
  traffic kind;
  std::int64_t bytes;
  position from;
  position to;
};

namespace detail {

template <class Handle, class Message>
void ship_over_network(const props& shared, const shipment& how, const Handle& to,
                       Message what) {
  shared.links->send(shared.plan->rank_of(how.from), shared.plan->rank_of(how.to),
                     static_cast<double>(how.bytes),
                     [meter = shared.meter, to, what = std::move(what)] {
                       post(*meter, to, Message{what});
                     });
}

inline bool takes_time(const props& shared) {
  return shared.links != nullptr && !shared.links->is_free();
}

} // namespace detail

/// Sends a tensor message from inside an actor, and counts the bytes. In virtual time
/// the message arrives when the network has carried the bytes.
template <class Self, class Handle, class Message>
void ship(Self* self, const props& shared, const shipment& how, const Handle& to,
          Message what) {
  shared.meter->moved(how.kind, how.bytes);
  if (detail::takes_time(shared))
    detail::ship_over_network(shared, how, to, std::move(what));
  else
    tell(self, *shared.meter, to, std::move(what));
}

/// The same from outside an actor: from a device's callback.
template <class Handle, class Message>
void ship(const props& shared, const shipment& how, const Handle& to, Message what) {
  shared.meter->moved(how.kind, how.bytes);
  if (detail::takes_time(shared))
    detail::ship_over_network(shared, how, to, std::move(what));
  else
    post(*shared.meter, to, std::move(what));
}

} // namespace troupe
