// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Programs whose work is one function from options to results, for the program's
// command line and for callers in other programs, as in Python.

#include "actors/run/progress.hpp"
#include "experiments/options/options.hpp"

#include <tl/expected.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace troupe {

/// Receives what a program tells while it performs. The thread that performs calls the
/// functions.
struct program_listener {
  /// Receives one sentence about a failure.
  std::function<void(const std::string&)> error;
  /// Receives one sentence about something else that the user should know.
  std::function<void(const std::string&)> note;
  /// Receives the progress of a training; may be empty.
  std::function<void(const progress&)> advance = {};
};

/// The end of a program's work.
struct program_end {
  int exit_code = 0;   ///< 0, 1 after a failure, or 130 if the user ended the program.
  std::string results; ///< JSON, as --json writes it; empty: there are no results.
  std::string table;   ///< What the program prints of its results, unless quiet.
};

/// A program, and what it performs. The error of `perform` is one sentence if options
/// cannot be fulfilled.
struct performed_program {
  program_info info;
  tl::expected<program_end, std::string> (*perform)(const options&,
                                                    const program_listener&);
};

// Loss, perplexity and accuracy of saved weights.
performed_program evaluate_program();

// Memory and messages under each level of ZeRO.
performed_program memory_program();

// Proofs of runs.
performed_program verify_program();

/// The program of a name; null: there is none.
const performed_program* performed_program_named(std::string_view name);

/// Runs a program from the command line to the exit code, as run_program(). Prints
/// errors and notes.
int run_performed(const performed_program& program, int argc, const char* const* argv);

} // namespace troupe
