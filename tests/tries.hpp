// SPDX-License-Identifier: BSD-3-Clause
// A choice of cases for builds with sanitizers. Such builds are many times slower, and
// run only some of many similar cases.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe::tests {

/// Whether a test runs a case. Without sanitizers always. With sanitizers, if one of
/// the case's values is new at that position, and else one case in `one_in`.
/// \param file and
/// \param line of the call; each call counts its own cases
inline bool tries([[maybe_unused]] int one_in,
                  [[maybe_unused]] std::initializer_list<std::string> values,
                  [[maybe_unused]] const char* file = __builtin_FILE(),
                  [[maybe_unused]] int line = __builtin_LINE()) {
#ifdef TROUPE_SANITIZED
  struct call {
    int skipped = 0;
    std::set<std::pair<std::size_t, std::string>> tried;
  };
  static std::map<std::pair<std::string, int>, call> calls;
  auto& here = calls[{file, line}];
  bool is_new = false;
  std::size_t place = 0;
  for (const auto& value : values)
    is_new |= here.tried.emplace(place++, value).second;
  if (!is_new && ++here.skipped < one_in)
    return false;
  here.skipped = 0;
#endif
  return true;
}

} // namespace troupe::tests
