// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <optional>
#include <string>

namespace troupe {

/// How fast a run comes on, by the wall's clock, over the ten seconds before its last
/// progress, or back to the progress before that. Evaluations and checkpoints in that
/// time count, as a user waits for them too; a step that is not finished does not.
class pace {
public:
  /// `done` of the run is through at a time; times do not decrease. A run that begins
  /// again has done less than before: its pace is measured anew.
  void add(double seconds, double done);

  /// What is done a second; empty until that has been seen for half a second.
  std::optional<double> rate() const;

  /// Seconds until `all` is done; empty if nobody knows.
  std::optional<double> left(double all) const;

private:
  struct point {
    double seconds;
    double done;
  };

  std::deque<point> changes_; // of what is done; the first is from before that time
  double now_ = 0;            // seconds
};

/// Seconds of a clock that only goes on, from a beginning of its own.
double seconds_now();

/// A time to wait, as "12 s left", "3 min left" or "2 h 5 min left".
std::string time_left(double seconds);

/// A rate in three digits, as "0.52", "284" or "12000".
std::string rate_text(double a_second);

} // namespace troupe
