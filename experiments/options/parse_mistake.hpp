// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Converts mistakes that CLI11 finds in a command line to sentences of this project.

#include <string>

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace troupe {

/// A text that a user typed, for one line of a terminal: control characters become '?'.
std::string printable(std::string text);

/// The sentence about a mistake of the command line: "there is no option '--bacth' (did
/// you mean '--batch'?)".
/// \param app the application that parsed the command line
std::string sentence_of(const CLI::App& app, const CLI::ParseError& error);

/// The sentence about an option whose value is the name of another option, as in
/// `--save --quiet`; empty if there is none.
/// \param app the application after it has parsed the command line, also with a mistake
std::string missing_value(const CLI::App& app);

/// The suggestion of an option whose name is near to `name`, in the form of
/// did_you_mean (suggestion.hpp); empty if no name is near.
/// \param dashes before the suggested name: "--", or "" for an option in a file
std::string options_near(const CLI::App& app, const std::string& name,
                         const std::string& dashes);

} // namespace troupe
