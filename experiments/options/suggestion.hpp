// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Sentences about a name that does not exist: the nearest allowed name, and the list of
// allowed names.

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The candidate that a user most likely meant by `typed`. The first choice has the
/// smallest edit distance (insertions, deletions, replacements, swaps of neighbours).
/// The distance is at most a third of the length of `typed`, or 1 for a shorter text.
/// The second choice is the only candidate that begins with `typed`. Empty if no
/// candidate is near, or if `typed` is empty or has more than 64 characters.
std::string nearest(std::string_view typed, const std::vector<std::string>& candidates);

/// " (did you mean 'x'?)" for the nearest candidate; empty if none is near.
std::string did_you_mean(std::string_view typed,
                         const std::vector<std::string>& candidates);

/// "there is no schedule 'x' (did you mean 'a'?); there are a, b". A list of more than
/// 24 names ends with .. after the first 24.
/// \param noun "schedule"
std::string unknown_name(const std::string& noun, const std::string& typed,
                         const std::vector<std::string>& candidates);

/// The names in a list "a, b"; the blanks after commas are optional.
std::vector<std::string> names_in(const std::string& list);

} // namespace troupe
