// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/report/run_account.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The text of results.json: the runs that ended, the schedules that were left out, and
/// the runs that have not started.
/// \param runs the first runs of `shared`, in the same order
/// \pre there are runs in `shared`
std::string results_json(const options& o, const setup& shared,
                         const std::vector<run_account>& runs);

/// A run that verify has proved, or tried to.
struct verified_run {
  std::string text;     ///< Schedule, sizes and clock, for people.
  std::string schedule; ///< As typed.
  verification proved;
};

/// The text of the file of verify --json: the proofs of each run.
std::string verified_json(const options& o, const std::vector<verified_run>& runs);

/// The table that compares the runs, for people, and below it results_legend(). Runs
/// that have not started are the last rows.
/// \param target the loss of --target-loss
/// \param runs the first runs of `shared`, in the same order
/// \pre there are runs in `shared`
std::string results_table(const setup& shared, const std::vector<run_account>& runs,
                          std::optional<double> target = {});

} // namespace troupe
