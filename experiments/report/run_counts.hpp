// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Counts of a run that may go on where another has ended.

#include "actors/plan/run_plan.hpp"

#include <compare>
#include <cstdint>

namespace troupe {

/// Samples of this run alone, as its actors, its progress and its record count them.
struct run_samples {
  std::int64_t count = 0;

  auto operator<=>(const run_samples&) const = default;
};

/// Samples since the first start, with those before this run: as results.json, event
/// files and evaluations count them.
struct total_samples {
  std::int64_t count = 0;

  auto operator<=>(const total_samples&) const = default;
};

/// Steps since the first start.
struct total_steps {
  int count = 0;

  auto operator<=>(const total_steps&) const = default;
};

inline total_samples total_of(run_samples samples, const run_plan& plan) {
  return {plan.batches().before + samples.count};
}

/// \pre the run trains
inline total_samples samples_after(total_steps steps, const run_plan& plan) {
  return {plan.work->batch * steps.count};
}

/// Samples of this run up to a place; negative before it.
inline run_samples samples_of_run(total_samples samples, const run_plan& plan) {
  return {samples.count - plan.batches().before};
}

/// When the run ends.
inline total_steps last_step(const run_plan& plan) {
  return {plan.dims.before + plan.dims.steps};
}

} // namespace troupe
