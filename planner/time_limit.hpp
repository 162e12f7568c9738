// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

namespace troupe::planner {

/// The wall time of a search, from the constructor on.
class time_limit {
public:
  explicit time_limit(double seconds) : seconds_(seconds) {}

  /// Seconds until the end; below 0 behind it.
  double left() const {
    const std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - begin_;
    return seconds_ - passed.count();
  }

  bool is_over() const { return left() <= 0; }

private:
  double seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

} // namespace troupe::planner
