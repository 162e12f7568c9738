// Builds with sanitizers are many times slower, and try some of many similar cases.
#pragma once

#include <cstdint>

namespace troupe::tests {

/// Whether a test tries this case: always, or under sanitizers one in `one_in`, from
/// the first on. A number that has no divisor in common with the length of an axis of
/// cases leaves out none of its values, if there are enough cases.
inline bool tries([[maybe_unused]] std::uint32_t one_in) {
#ifdef TROUPE_SANITIZED
  static std::uint32_t seen = 0;
  return seen++ % one_in == 0;
#else
  return true;
#endif
}

} // namespace troupe::tests
