// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Mistakes that CLI11 finds in a command line, as sentences of this project.

#include <string>

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace troupe {

/// A text that a user typed, for one line of a terminal: control characters are '?'.
std::string printable(std::string text);

/// "there is no option '--bacth' (did you mean '--batch'?)". \param app that parsed
std::string sentence_of(const CLI::App& app, const CLI::ParseError& wrong);

/// The sentence about an option whose value is the name of another option, as --quiet
/// in
/// `--save --quiet`; empty if there is none.
std::string missing_value(const CLI::App& app);

/// The names of options that nearly have this one, as did_you_mean (suggestion.hpp).
/// \param dashes before the name: "--", or "" in a file
std::string options_near(const CLI::App& app, const std::string& name,
                         const std::string& dashes);

} // namespace troupe
