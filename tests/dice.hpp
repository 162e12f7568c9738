// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <random>

/// Random choices for tests: the same sequence for the same seed.
class dice {
public:
  explicit dice(unsigned seed) : engine_(seed) {
    // nop
  }

  /// A random integer from `least` to `most`, both included.
  int number(int least, int most) {
    return std::uniform_int_distribution<int>{least, most}(engine_);
  }

  double real(double from, double to) {
    return std::uniform_real_distribution<double>{from, to}(engine_);
  }

  float normal() { return std::normal_distribution<float>{}(engine_); }

  bool coin() { return number(0, 1) == 1; }

  template <class Range>
  auto one_of(const Range& choices) {
    return *std::next(std::begin(choices),
                      number(0, static_cast<int>(std::size(choices)) - 1));
  }

private:
  std::mt19937 engine_;
};
