// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The texts of --help and --help-all. A description is one paragraph; lines behind it
// of the form "value<TAB>meaning" are printed as a table, a line each.

#include <string>

namespace CLI {
class App;
}

namespace troupe {

/// No line of a help text has more characters.
inline constexpr std::size_t help_width = 100;

/// Adds -h and --help, which print the most used options on one screen, and --help-all,
/// which prints all options in groups and the footer behind them; and --version. A
/// program whose options have no groups prints all options for both.
void add_help(CLI::App& app);

/// A text broken into lines of at most help_width characters. A line with a tab is a
/// row of a table: neighbours have a common second column, and keep their indentation.
std::string wrapped(const std::string& text, std::size_t indent = 0);

} // namespace troupe
