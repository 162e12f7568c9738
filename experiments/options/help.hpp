// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The texts of --help and --help-all. A description is one paragraph. Lines after it of
// the form "value<TAB>meaning" are printed as a table, one row each.

#include <string>

namespace CLI {
class App;
}

namespace troupe {

/// The longest line of a help text, in characters.
inline constexpr std::size_t help_width = 100;

/// Adds -h and --help, which print the most used options on one screen, and --version.
/// Also adds --help-all, which prints all options in groups and then the footer. A
/// program whose options have no groups prints all options for both.
void add_help(CLI::App& app);

/// Breaks a text into lines of at most help_width characters. A line with a tab is a
/// row of a table: neighbouring rows share the second column, and every row keeps the
/// indentation.
std::string wrapped(const std::string& text, std::size_t indent = 0);

} // namespace troupe
