// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Random draws of searches: the same sequence for the same seed on every machine.

#include <cstdint>
#include <random>

namespace troupe::planner {

class random_draws {
public:
  explicit random_draws(std::uint64_t seed) : engine_(seed) {
    // nop
  }

  /// A real number from 0, below 1.
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

  /// An integer from 0, below `count`.
  /// \pre 0 < count
  int below(int count) { return static_cast<int>(unit() * count); }

private:
  std::mt19937_64 engine_; // the standard library's distributions differ by machine
};

} // namespace troupe::planner
