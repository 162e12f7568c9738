// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/send.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>

namespace tiny {

/// A test's actor in the place of a run's actor: handles the messages that the test
/// gives handlers for, and drops all others.
template <class Handle, class... Handlers>
Handle stand_in(caf::actor_system& system, troupe::message_meter& meter,
                Handlers... handlers) {
  return caf::actor_cast<Handle>(system.spawn(
    [handlers...](caf::event_based_actor* self,
                  troupe::message_meter* counts) -> caf::behavior {
      self->set_default_handler(caf::drop);
      return {troupe::on_message(self, *counts, handlers)...};
    },
    &meter)); // CAF reads the null pointer of an actor's arguments if there are none
}

} // namespace tiny
