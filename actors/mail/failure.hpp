// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/thrown.hpp"

#include <caf/error.hpp>
#include <caf/sec.hpp>

#include <exception>
#include <string>

namespace troupe {

/// The reason with which an actor ends, in words.
inline caf::error failure_of(const std::string& why) {
  return caf::make_error(caf::sec::runtime_error, why);
}

/// That reason when a handler throws: the actor's name and what was said.
inline caf::error failure_of(const std::string& name,
                             const std::exception_ptr& thrown) {
  return failure_of(name + ": " + text_of(thrown));
}

/// Makes an actor end with failure_of when a handler throws. CAF's own handler would
/// lose the text on its way to the monitors.
template <class Self>
void report_failures(Self* self) {
  self->set_exception_handler([self](std::exception_ptr& thrown) {
    return failure_of(self->state.name, thrown);
  });
}

/// The text of such a reason; empty if an actor ended because it was told to.
std::string text_of(const caf::error& reason);

} // namespace troupe
