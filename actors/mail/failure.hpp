#pragma once

#include <caf/error.hpp>
#include <caf/sec.hpp>

#include <exception>
#include <new>
#include <string>

namespace troupe {

/// The reason with which an actor ends when a handler throws: its name and what was
/// said.
inline caf::error failure_of(const std::string& name, std::exception_ptr& thrown) {
  std::string what = "an exception of unknown type";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    what = "out of memory";
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) { // NOLINT(bugprone-empty-catch)
  }
  return caf::make_error(caf::sec::runtime_error, name + ": " + what);
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
