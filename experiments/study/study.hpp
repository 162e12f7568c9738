// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

/// Runs the program `study`: reads the command line, runs every combination, and writes
/// runs.csv, summary.csv and study.html. Returns the exit code: 1 if a run failed, 2
/// after a mistake of the command line or if every combination was refused.
int run_study(int argc, const char* const* argv);

} // namespace troupe
