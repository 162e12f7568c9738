// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <functional>

namespace troupe {

/// A program from its command line to its exit code: reads the options and hands them
/// to `body`, which returns the exit code. 0 after --help and --version; 2 after one
/// sentence about a mistake in the options; 1 after one sentence about what `body`
/// threw, or where standard output took less than was written.
int run_program(const program_about& about, int argc, const char* const* argv,
                const std::function<int(options)>& body);

} // namespace troupe
