// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/files/cells.hpp"

#include <tl/expected.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The cells of a file, a row a rank, and what it says of itself.
struct file_rows {
  std::vector<std::vector<file_cell>> rows;
  std::map<std::string, std::string> values;
};

/// On error says what is wrong, and in which line.
tl::expected<file_rows, std::string> read_rows(std::string_view text);

} // namespace troupe
