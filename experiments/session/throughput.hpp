// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <optional>
#include <string>

namespace troupe {

/// The rate of a run by the wall clock, over the ten seconds before its last progress,
/// or since the progress before that. Evaluations and checkpoints in that time count,
/// as a user waits for both; an unfinished step does not.
class throughput {
public:
  /// Records that `done` units of the run have ended at a time in seconds; times do not
  /// decrease. A run that starts again has done less than before: the rate is measured
  /// anew.
  void add(double seconds, double done);

  /// Units a second; empty until half a second has been observed.
  std::optional<double> rate() const;

  /// Seconds until all units are done; empty if unknown.
  std::optional<double> left(double total) const;

private:
  struct point {
    double seconds;
    double done;
  };

  std::deque<point> changes_; // steps of progress; the first is older than ten seconds
  double now_ = 0;            // latest time, in seconds
};

/// Seconds of a clock that never goes back, from an arbitrary start.
double seconds_now();

/// A remaining time, as "12 s left", "3 min left" or "2 h 5 min left".
std::string time_left(double seconds);

/// A rate in three digits, as "0.52", "284" or "12000".
std::string rate_text(double a_second);

} // namespace troupe
