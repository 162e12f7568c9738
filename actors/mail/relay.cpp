// SPDX-License-Identifier: BSD-3-Clause
#include "actors/mail/relay.hpp"

#include "actors/mail/failure.hpp"

namespace troupe {

relay::relay(caf::actor_config& config) : neighbour_actor::base(config) {
  set_exception_handler(
    [](std::exception_ptr& thrown) { return failure_of(text_of(thrown)); });
}

} // namespace troupe
