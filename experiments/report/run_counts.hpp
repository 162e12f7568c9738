// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Types for the counts of a run, which may resume where another run has ended. Counts
// of this run and counts since the first start have different types and do not mix.

#include "plan/run_plan.hpp"

#include <compare>
#include <cstdint>

namespace troupe {

/// Samples of this run alone. Actors, progress and the record count such samples.
struct run_samples {
  std::int64_t count = 0;

  auto operator<=>(const run_samples&) const = default;
};

/// Samples since the training's first start, including samples before this run. Files
/// of results and events, and evaluations, count such samples.
struct total_samples {
  std::int64_t count = 0;

  auto operator<=>(const total_samples&) const = default;
};

/// Steps since the training's first start.
struct total_steps {
  int count = 0;

  auto operator<=>(const total_steps&) const = default;
};

/// Converts samples of this run to samples since the first start.
inline total_samples total_of(run_samples samples, const run_plan& plan) {
  return {plan.batches().preceding_samples + samples.count};
}

/// Samples of the training after a number of steps.
/// \pre the run trains
inline total_samples samples_after(total_steps steps, const run_plan& plan) {
  return {plan.work->batch * steps.count};
}

/// Converts samples since the first start to samples of this run. Negative if the run
/// starts after these samples.
inline run_samples samples_of_run(total_samples samples, const run_plan& plan) {
  return {samples.count - plan.batches().preceding_samples};
}

/// The steps since the training's first start when the run has performed all its steps.
inline total_steps last_step(const run_plan& plan) {
  return {plan.dims.batches_before + plan.dims.steps};
}

} // namespace troupe
