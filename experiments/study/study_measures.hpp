// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/report/loss_curve.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A number that a study compares, a column of runs.csv.
struct study_measure {
  const char* key;    ///< Name of the column, with the unit.
  const char* name;   ///< For people.
  const char* unit;   ///< Empty: a ratio.
  const char* better; ///< "less" or "more".
};

/// All measures, in the order of columns.
std::span<const study_measure> study_measures();

/// The numbers of a run of a study.
struct measured_run {
  std::string ending;
  std::string error; ///< Empty if the run finished.
  /// One number for each of study_measures(); absent where a run has none.
  std::vector<std::optional<double>> values;
  loss_curve curve;
  /// Samples over which losses are averaged before they are compared; 0: no losses.
  std::int64_t window = 0;
  std::string timing; ///< As in results.json; empty if unknown.
};

/// Reads the numbers of a results.json with one run. Numbers stay absent if the text is
/// empty or no such file.
measured_run measure(const std::string& results);

/// One sentence if other programs took much time of some runs, else an empty text.
std::string busy_warning(const std::vector<measured_run>& runs);

/// Sets the measure that compares several runs: the loss of each after as many seconds
/// as the run with the shortest time took. Runs without times are left out.
void compare_in_time(std::span<measured_run*> runs);

} // namespace troupe
