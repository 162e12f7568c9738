// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

/// A mistake in options, as one sentence.
struct option_mistake {
  std::string sentence;
  bool help_tells_more = false; ///< True if --help has the options that are allowed.
};

/// Reads the options of a program from words such as "--stages=4", as
/// read_command_line() does, and prints nothing.
/// \throws CLI::Success for --help, --help-all and --version
tl::expected<options, option_mistake> options_of(const program_info& program,
                                                 const std::vector<std::string>& words);

/// Reads the options of a program from its command line and from the file that --config
/// names. Options that both leave out may get values from the files of --init or
/// --weights, or from the checkpoint of --resume. The error is the exit code of a
/// program that ends now. The code is 0 after --help, --help-all and --version, and 2
/// after a mistake: one sentence is then printed on standard error.
tl::expected<options, int> read_command_line(const program_info& program, int argc,
                                             const char* const* argv);

/// Options as typed, on the command line or in a file of --config, without checks of
/// their values.
struct typed_words {
  typed_options typed;
  /// One word for each typed option, "--lr=0.1" or "--tied", in the order of
  /// --help-all. No word for --config, whose options have words of their own.
  std::vector<std::string> words;
};

/// Reads the command line of a program that passes options on to other programs. On a
/// mistake or for --help prints as read_command_line(), and returns the exit code.
tl::expected<typed_words, int> read_words(const program_info& program, int argc,
                                          const char* const* argv);

} // namespace troupe
