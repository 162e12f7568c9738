// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/setup.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/program.hpp"

namespace troupe {

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
