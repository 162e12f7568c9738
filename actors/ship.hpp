#pragma once

#include "actors/mail.hpp"
#include "actors/port.hpp"
#include "actors/props.hpp"

#include <cstdint>
#include <utility>

namespace troupe {

/// Sends a tensor from inside an actor; in virtual time it arrives then.
template <class Self, class Handle, class Message>
void ship_at(Self* self, const props& shared, nanoseconds arrival, const Handle& to,
             Message what) {
  if (shared.clock == nullptr || arrival == shared.clock->now())
    return tell(self, *shared.meter, to, std::move(what));
  shared.clock->at(arrival, [meter = shared.meter, to, what = std::move(what)] {
    post(*meter, to, Message{what});
  });
}

/// The same of so many bytes, arriving when a port says.
template <class Self, class Handle, class Message>
void ship(Self* self, const props& shared, traffic kind, std::int64_t bytes, port& by,
          const Handle& to, Message what) {
  shared.meter->moved(kind, bytes);
  const auto arrival = shared.clock == nullptr
                         ? 0
                         : by.send(static_cast<double>(bytes), shared.clock->now());
  ship_at(self, shared, arrival, to, std::move(what));
}

} // namespace troupe
