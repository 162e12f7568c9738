// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/setup.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/program.hpp"

namespace troupe {

/// Does what the options of a program say, once they were looked at: the runs one after
/// another, with progress while they run, and what they leave behind. Returns the exit
/// code: 0, 1 if a run failed, 130 if the user ended it.
int run_session(const options& o, const setup& shared);

/// The same from the options alone; says so when the set-up takes long. Returns 2 if
/// there is no such run.
int run_session(const options& o);

} // namespace troupe
