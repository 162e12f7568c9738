// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/occupation.hpp"

#include <vector>

namespace troupe {

/// A time in seconds.
constexpr double seconds_of(nanoseconds time) {
  constexpr double nanoseconds_a_second = 1e9;
  return static_cast<double>(time) / nanoseconds_a_second;
}

/// Each time in seconds.
inline std::vector<double> seconds_of(const std::vector<nanoseconds>& times) {
  std::vector<double> result;
  result.reserve(times.size());
  for (const auto time : times)
    result.push_back(seconds_of(time));
  return result;
}

} // namespace troupe
