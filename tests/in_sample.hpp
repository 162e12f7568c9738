// What builds with sanitizers, many times slower, try of many cases alike.
#pragma once

#include <cstdint>

namespace troupe::tests {

/// Whether to try this case: all of them, and about one in `one_in` under sanitizers;
/// the first, and the same ones each time. Scattered, so that no value of a nested
/// generator is left out as a whole.
inline bool in_sample([[maybe_unused]] std::uint32_t one_in) {
#ifdef TROUPE_SANITIZED
  static std::uint32_t seen = 0;
  return (seen++ * 2654435761U >> 16U) % one_in == 0;
#else
  return true;
#endif
}

} // namespace troupe::tests
