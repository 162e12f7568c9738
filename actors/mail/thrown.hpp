// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

namespace troupe {

/// What was thrown, in words.
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

/// What something of the user's own could not be made for: its place, and what its
/// maker has thrown.
class not_made : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// What a maker makes. \param place "own_exchange, for stage 1" \throws not_made if the
/// maker throws, or makes nothing
template <class Make>
auto made_by(const std::string& place, const Make& make) {
  try {
    if (auto made = make())
      return made;
  } catch (...) {
    throw not_made(place + ": " + text_of(std::current_exception()));
  }
  throw not_made(place + ": made nothing");
}

} // namespace troupe
