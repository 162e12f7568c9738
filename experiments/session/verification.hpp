// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/report/results.hpp"
#include "experiments/session/performed_programs.hpp"

#include <string>
#include <vector>

namespace troupe {

class node_runs;

/// Performs a request and proves the run, also by the published rule of the schedule
/// and its parameters, if there is one. A run that sums in another order than any plain
/// loop (sums_elsewhere) is performed twice, and both runs must give the same bits.
/// Weights that are not finite make the outcome `failed`. If the user ends the run or
/// the proof, the outcome is `interrupted`. If the run has not finished, there are no
/// proofs.
/// \param performs performs the runs; null: this process performs the runs
/// \pre proof_error(request.plan).empty()
/// \throws the exceptions of node_runs::perform
verification verify(const run_request& request, node_runs* performs = nullptr);

/// Verifies the first steps of a run, in this process: `steps` of the run, or a few
/// more until whole updates cover all microbatches. Verifies all steps if the run has
/// no more than `steps`, or if the schedule allows no smaller number. An exception
/// becomes the failure of the result.
/// \pre proof_error(request.plan).empty(), and the run starts at the first step
verification verify_first(const run_request& request, int steps);

/// Verifies the runs that options name, until the user ends the program, and adds each
/// to `to`. Prints proofs that hold, unless output is quiet. The listener receives
/// failures. Returns one sentence if the options are wrong, nodes cannot host the
/// ranks, or a run cannot be proved, else an empty text. \throws the exceptions of
/// node_runs::perform
std::string verify(const options& o, const program_listener& listener,
                   std::vector<verified_run>& to);

} // namespace troupe
