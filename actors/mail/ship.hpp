// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/mail.hpp"
#include "actors/mail/props.hpp"

#include <cstdint>
#include <utility>

namespace troupe {

/// A tensor message on its way between ranks: what its bytes are for, and whose ports
/// they take in virtual time.
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

/// Sends a tensor from inside an actor.
template <class Self, class Handle, class Message>
void ship(Self* self, const props& shared, const shipment& how, const Handle& to,
          Message what) {
  shared.meter->moved(how.kind, how.bytes);
  if (detail::takes_time(shared))
    detail::ship_over_network(shared, how, to, std::move(what));
  else
    tell(self, *shared.meter, to, std::move(what));
}

/// The same from outside: from a device's callback.
template <class Handle, class Message>
void ship(const props& shared, const shipment& how, const Handle& to, Message what) {
  shared.meter->moved(how.kind, how.bytes);
  if (detail::takes_time(shared))
    detail::ship_over_network(shared, how, to, std::move(what));
  else
    post(*shared.meter, to, std::move(what));
}

} // namespace troupe
