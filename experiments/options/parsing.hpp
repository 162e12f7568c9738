// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A mistake of the user: one sentence with the mistake and the allowed values.
using problem = tl::unexpected<std::string>;

/// Splits a text at each separator. Parts may be empty, but an empty text has no parts.
std::vector<std::string> split(const std::string& text, char separator);

/// "a, b"
std::string listed(const std::vector<std::string>& names);

/// The text of a file without the byte order mark of UTF-8, which some editors write
/// first.
std::string without_byte_order_mark(std::string text);

/// Reads a whole text as a finite number in plain decimal: 12, -0.5 or 1e-3. Absent if
/// the text is no such number.
std::optional<double> decimal(std::string_view text);

/// Reads a whole text as a finite number of at least 0, in plain decimal. Absent if the
/// text is no such number.
std::optional<double> number(std::string_view text);

/// Reads a whole text as a whole number in plain decimal: digits, after a minus if
/// negative. Absent if the text is no such number of this type. A leading 0 is refused,
/// as other programs read 010 as 8.
template <class Integer>
std::optional<Integer> whole_number(std::string_view text) {
  Integer value = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, value);
  const auto digits = text.substr(text.starts_with('-') ? 1 : 0);
  const bool padded = digits.size() > 1 && digits.front() == '0';
  if (failed != std::errc{} || stop != end || padded)
    return {};
  return value;
}

// Sentences about a name that does not exist: the nearest allowed name, and the list of
// allowed names.

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
