// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Makes text from other processes safe to print and store.

namespace troupe::wire {

/// The treatment of line breaks in a text of another process.
enum class line_breaks : std::uint8_t { escaped, kept };

/// Bytes of the longest text of another process that this process prints.
inline constexpr std::size_t most_foreign_bytes = 4000;

/// A text of another process, in the form that this one may print and store: UTF-8
/// without characters that command a terminal or reorder a line. Each other byte is
/// shown as a number, as \x1b. The end of a long text is replaced by the text's length.
std::string foreign_text(std::string_view text, line_breaks breaks);

} // namespace troupe::wire
