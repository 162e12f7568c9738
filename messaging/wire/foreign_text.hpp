// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::wire {

/// Line breaks in a text of another process.
enum class line_breaks : std::uint8_t { escaped, kept };

/// Bytes of the longest text that another process may have printed here.
inline constexpr std::size_t most_foreign_bytes = 4000;

/// A text of another process, as this one may print and store it: UTF-8 without
/// characters that command a terminal or reorder a line. Each other byte becomes its
/// number, as \x1b. The end of a long text becomes its length.
std::string foreign_text(std::string_view text, line_breaks breaks);

} // namespace troupe::wire
