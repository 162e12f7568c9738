// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/report/results.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

class node_runs;

/// What the program verify is, also for tests that call it in their own process.
program_about about_verify();

/// Why a run cannot be proved, with what would help; empty if it can.
std::string refusal_of_proofs(const run_plan& plan);

/// Of a run that nodes play on GPUs the proof is this process's, on its first GPU,
/// whichever theirs are: puts a plan's ranks there. Not if some are on CPUs.
void prove_on_own_gpu(run_plan& plan);

/// Runs a request and proves it, by the published rule that its text calls for. A run
/// whose sums no plain loop has is run again, and has to give the same bits.
/// \param performs its runs; null: they are of this process
/// \pre refusal_of_proofs(request.plan).empty() \throws what node_runs::perform does
verification verify(const run_request& request, node_runs* performs = nullptr);

/// Verifies the first steps of a run, in this process: so many, or a few more until its
/// updates are whole; all of them, if the schedule has no smaller sizes. \pre as above,
/// and the run does not go on behind other steps
verification verify_first(const run_request& request, int steps);

/// Runs, and those of them that have a proof that fails.
struct verified_runs {
  int runs = 0;
  int failures = 0;
};

/// Verifies what the options say, and prints each proof unless told to be quiet.
/// Absent, after a sentence about it, if the options are wrong.
std::optional<verified_runs> verify(const options& o);

} // namespace troupe
