// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Makes text from other processes safe to print and store.

namespace troupe::wire {

/// The treatment of line feeds in a text of another process.
enum class line_breaks : std::uint8_t { escaped, kept };

/// The largest number of bytes in a result of foreign_text().
inline constexpr std::size_t most_foreign_bytes = 4000;

/// Returns a text of another process in a form that this process may print and store.
/// The form is UTF-8 without characters that control a terminal or reorder a line,
/// except line feeds that `breaks` keeps. Each other byte is shown as a number, such as
/// \x1b. A result above most_foreign_bytes is cut, and ends with the original text's
/// number of bytes.
std::string foreign_text(std::string_view text, line_breaks breaks);

} // namespace troupe::wire
