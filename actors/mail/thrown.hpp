// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

// Texts of exceptions, and of user's functions that fail to make an object.

namespace troupe {

/// The text of an exception.
inline std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

/// The error of a user's function that has thrown, or has returned no object. The text
/// has the object's name, then the exception's text or "made nothing".
class not_made : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Returns the object that a user's function makes.
/// \param context the object's name for errors, as "user_exchange, for stage 1"
/// \throws not_made if the function throws, or returns no object
template <class Make>
auto made_by(const std::string& context, const Make& make) {
  try {
    if (auto object = make())
      return object;
  } catch (...) {
    throw not_made(context + ": " + text_of(std::current_exception()));
  }
  throw not_made(context + ": made nothing");
}

} // namespace troupe
