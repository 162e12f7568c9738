// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <optional>
#include <string>

namespace troupe {

/// The rate of a run by the wall clock, over about the ten seconds before the last
/// progress. If the previous progress is older, the rate covers the time since the
/// previous progress. The time of evaluations and checkpoints counts, as a user waits
/// for both. The time since the last progress does not count.
class throughput {
public:
  /// Records the total number of units done at time `seconds`. A total below the last
  /// one means that the run has started again. The rate then counts from this call.
  /// \pre `seconds` is not below the last call's
  void add(double seconds, double done);

  /// Units a second; absent until half a second has been observed.
  std::optional<double> rate() const;

  /// Seconds from the last progress until all units are done; absent if the rate is
  /// unknown or 0.
  /// \param total number of units of the run
  std::optional<double> left(double total) const;

private:
  struct point {
    double seconds;
    double done;
  };

  std::deque<point> changes_; // progress; only the first may be ten seconds old
  double now_ = 0;            // latest time, in seconds
};

/// Seconds of a clock that never goes back, from an arbitrary start.
double seconds_now();

/// A remaining time, as "12 s left", "3 min left", "2 h 5 min left" or "3 days left".
std::string time_left(double seconds);

/// A rate with two decimals below 10, one below 100, and none above: "0.52", "28.4",
/// "12000".
std::string rate_text(double a_second);

} // namespace troupe
