// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The texts of --help and --help-all. A description is one paragraph. Lines after the
// paragraph have the form "value<TAB>meaning", and are printed as rows of a table.

#include <string>

namespace CLI {
class App;
}

namespace troupe {

/// The width of a help text, in characters. A line is longer if a word or a list of
/// option names does not fit.
inline constexpr std::size_t help_width = 100;

/// Adds --version. Adds -h and --help, which print the most used options with one
/// sentence each. Adds --help-all, which prints all options in groups and then the
/// footer. A program whose options have no groups prints all options for --help and for
/// --help-all.
void add_help(CLI::App& app);

/// Breaks a text into lines of at most help_width characters; a single long word may
/// have more. A line with a tab is a row of a table: the text after the tab is wrapped
/// in a second column. Neighbouring rows share the start of the second column. Leading
/// blanks of a line without a tab also begin the line's continuations.
/// \param indent blanks before each line that is not empty
std::string wrapped(const std::string& text, std::size_t indent = 0);

} // namespace troupe
