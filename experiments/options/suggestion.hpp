// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Sentences about a name that does not exist: the nearest allowed name, and the list.

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The candidate that a user most likely meant by `typed`: the one with the smallest
/// edit distance (insertions, deletions, replacements, swaps of neighbours), at most
/// one for three characters; else the only one that begins with `typed`. Empty: none is
/// near.
std::string nearest(std::string_view typed, const std::vector<std::string>& candidates);

/// " (did you mean 'x'?)" for the nearest candidate; empty if none is near.
std::string did_you_mean(std::string_view typed,
                         const std::vector<std::string>& candidates);

/// "there is no schedule 'x' (did you mean 'a'?); there are a, b". The list ends with
/// .. if it is long. \param noun "schedule"
std::string unknown_name(const std::string& noun, const std::string& typed,
                         const std::vector<std::string>& candidates);

/// The names of a list with commas and blanks between them.
std::vector<std::string> names_in(const std::string& list);

} // namespace troupe
