// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <functional>
#include <string>

namespace troupe {

/// Runs a program from the command line to the exit code. Reads the options, replaces
/// options by measurements (measure_options), and passes the options to `body`, which
/// returns the exit code. The code is 0 after --help, --help-all and --version, and 2
/// after one sentence about a mistake in the options. The code is 1 after one sentence
/// about an exception of these steps. If standard output accepted less than was
/// written, the code is at least 1, and at least 130 if a reader has gone. If a run has
/// left threads that never end, the function ends the program with a code of at least
/// 1.
int run_program(const program_info& program, int argc, const char* const* argv,
                const std::function<int(options)>& body);

/// Runs the body of a program that reads its command line itself. Exceptions, standard
/// output and threads that never end are handled as by run_program().
/// \param name of the program, for errors
int run_guarded(const std::string& name, const std::function<int()>& body);

} // namespace troupe
