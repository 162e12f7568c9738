// SPDX-License-Identifier: BSD-3-Clause
// The time that other programs of the machine took from a run, in numbers and in words.
#pragma once

#include "actors/run/run_result.hpp"
#include "plan/run_plan.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

namespace troupe {

/// The largest share of other programs without a warning.
inline constexpr double usual_share = 0.1;

/// The share of the wall time of a run's actions in which the actions' threads had no
/// processor, from 0 to 1. Ranks on GPUs do not count. Absent in virtual time, in a
/// simulation, if the run failed, and if no action of a CPU took time.
std::optional<double> other_programs_share(const run_plan& plan,
                                           const run_result& result);

/// A warning that other programs took more than a tenth of a run's time.
struct other_programs_warning {
  double share;
  std::string takers;      ///< Everything that may have had the processors.
  std::string consequence; ///< What the run's numbers mean.

  /// One sentence with the share, without a full stop. Begins with a small letter.
  std::string sentence() const;
};

/// The warning of a run; absent if the share is unknown, or at most a tenth.
/// \param modelled true if the times of the result are modelled
std::optional<other_programs_warning>
warning_of(const run_plan& plan, const run_result& result, bool modelled);

/// `other_programs` of results.json; null if the share is unknown.
nlohmann::ordered_json other_programs_json(const run_plan& plan,
                                           const run_result& result, bool modelled);

} // namespace troupe
