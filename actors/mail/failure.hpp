// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/thrown.hpp"

#include <caf/error.hpp>
#include <caf/sec.hpp>

#include <exception>
#include <string>

// The exit reasons of actors that fail, and the texts of such reasons.

namespace troupe {

/// The exit reason of a failed actor, from a text.
inline caf::error failure_of(const std::string& why) {
  return caf::make_error(caf::sec::runtime_error, why);
}

/// The exit reason after a handler has thrown: the actor's name and the exception's
/// text.
inline caf::error failure_of(const std::string& name,
                             const std::exception_ptr& thrown) {
  return failure_of(name + ": " + text_of(thrown));
}

/// Lets an actor end with failure_of() when a handler throws. CAF's own handler would
/// lose the text on the way to the monitors.
template <class Self>
void report_failures(Self* self) {
  self->set_exception_handler([self](std::exception_ptr& thrown) {
    return failure_of(self->state.name, thrown);
  });
}

/// The text of failure_of() in an exit reason. For any other reason, a sentence with
/// CAF's text. Empty if the actor ended by an exit message (user_shutdown) or without
/// an error.
std::string text_of(const caf::error& reason);

} // namespace troupe
