#pragma once

#include "actors/mail.hpp"
#include "actors/port.hpp"
#include "actors/props.hpp"
#include "messaging/collective_message.hpp"

#include <utility>

namespace troupe {

/// Sends a message of a collective from inside an actor; in virtual time it arrives
/// when the port says.
template <class Self, class Handle>
void ship(Self* self, const props& shared, port& by, const Handle& to,
          collective_message what) {
  if (shared.clock == nullptr)
    return tell(self, *shared.meter, to, std::move(what));
  const auto arrival = by.send(static_cast<double>(what.bytes()), shared.clock->now());
  if (arrival == shared.clock->now())
    return tell(self, *shared.meter, to, std::move(what));
  shared.clock->at(arrival, [meter = shared.meter, to, what = std::move(what)] {
    post(*meter, to, collective_message{what});
  });
}

} // namespace troupe
