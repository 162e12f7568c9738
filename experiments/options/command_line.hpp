// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <tl/expected.hpp>

namespace troupe {

/// Reads the options of a program from its command line and from the file that --config
/// names. Options that both leave out may get values from the files of --init or
/// --weights, or from the checkpoint of --resume. The error is the exit code of a
/// program that ends now. The code is 0 after --help, --help-all and --version, and 2
/// after a mistake: one sentence is then printed on standard error.
tl::expected<options, int> read_command_line(const program_info& program, int argc,
                                             const char* const* argv);

} // namespace troupe
