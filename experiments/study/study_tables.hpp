// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/study/study_measures.hpp"
#include "experiments/study/study_plan.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

// The tables of a study: a row for each run, and the mean over seeds.

namespace troupe {

/// Mean and sample standard deviation.
struct spread {
  double mean = 0;
  std::optional<double> deviation; ///< Absent for one number.
  int count = 0;
};

/// A measure of one schedule under one combination of varied options, over seeds.
struct study_summary {
  std::string schedule;
  std::vector<std::string> values; ///< One for each varied option.
  std::size_t measure;             ///< Index into study_measures().
  spread over_seeds;
  /// Difference to the study's first schedule in runs of equal seeds; absent for the
  /// first schedule and without pairs.
  std::optional<spread> difference;
};

/// Summaries of the runs that finished, for measures that some run has. Combinations
/// and schedules stand in the order of the plan's runs.
/// \param runs one entry for each run of the plan
std::vector<study_summary> summaries_of(const study_plan& plan,
                                        const std::vector<measured_run>& runs);

/// runs.csv: a row for each run, a column for each option and measure. Unknown numbers
/// are empty.
std::string runs_csv(const study_plan& plan, const std::vector<measured_run>& runs);

/// summary.csv: a row for each of study_summary.
std::string summary_csv(const study_plan& plan,
                        const std::vector<study_summary>& summaries);

/// The table for the terminal, with mean and deviation of the main measures. Each
/// refused combination follows with its reason.
std::string study_table(const study_plan& plan, const std::vector<measured_run>& runs,
                        const std::vector<study_summary>& summaries);

} // namespace troupe
