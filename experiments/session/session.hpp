// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/setup.hpp"
#include "experiments/report/run_account.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/performed_programs.hpp"
#include "experiments/session/program.hpp"

#include <tl/expected.hpp>

#include <functional>
#include <list>
#include <string>
#include <vector>

namespace troupe {

/// The runs of a session that has ended. Without a run there are no results.
struct ended_session : program_end {
  /// The first runs of the setup, in the same order. With `keeps_everything` results
  /// have the kept actions and the parameters, else numbers alone.
  std::vector<run_account> accounts;
  /// Requests of runs that started again after the loss of nodes; accounts refer to
  /// these requests and to those of the setup.
  std::list<run_request> restarted;
  std::vector<std::string> timelines; ///< With `keeps_everything`: of report_page().
};

/// Performs the runs of a program one after another, and writes the results. Prints
/// what run_session() prints, unless output is quiet, but no errors and notes. The
/// error is one sentence if options cannot be fulfilled; no run has begun then.
/// \param shared outlives the result
/// \param keeps_everything keeps the record of each run in memory
/// \pre there are runs in `shared`
tl::expected<ended_session, std::string>
perform_session(const options& o, const setup& shared, const program_listener& listener,
                bool keeps_everything);

/// Performs the runs of a program one after another, shows their progress, and writes
/// the results. Returns the exit code: 0, 1 if a run, a proof or a write failed, 2 if
/// options cannot be fulfilled, 130 if the user ended the program. The code is also 1
/// after the message that GPUs cannot exchange tensors directly; if output is quiet,
/// there is no such message.
/// \pre there are runs in `shared`
int run_session(const options& o, const setup& shared);

/// Sets up the runs that options ask for, and performs the runs by the other
/// run_session. Prints a notice if the set-up takes longer than 5 seconds, unless
/// output is quiet. Returns 2 if the runs cannot be set up. If no step is left to
/// train, returns 1 if the file of --save or --json, or the folder of --report, is
/// missing. Else returns 0. Standard output (--json -) counts as missing.
int run_session(const options& o);

} // namespace troupe
