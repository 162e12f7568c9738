// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/files/cells.hpp"

#include <tl/expected.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

// The text of a schedule file, split into rows of cells and header values.

namespace troupe {

/// The cells of a file, one row per rank, and the keys and values of header lines.
struct file_rows {
  std::vector<std::vector<file_cell>> rows;
  std::map<std::string, std::string> values;
};

/// Reads the lines of a schedule file. On error, one sentence says which line or cell
/// is wrong, and why.
tl::expected<file_rows, std::string> read_rows(std::string_view text);

} // namespace troupe
