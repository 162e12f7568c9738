#pragma once

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What is wrong with something that a user typed, and what is allowed.
using problem = tl::unexpected<std::string>;

/// The parts of a text between separators.
std::vector<std::string> split(const std::string& text, char separator);

/// A whole text as a number that is finite and not negative.
std::optional<double> number(const std::string& text);

} // namespace troupe
