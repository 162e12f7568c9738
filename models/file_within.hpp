// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/input_file.hpp"

namespace troupe {

/// Whether a path leads to a place in a folder, behind all links of both. A relative
/// path begins there.
bool leads_into(const std::filesystem::path& folder, const std::filesystem::path& path);

/// Opens a file as input_file::open does. A file that does not lie in a folder, behind
/// all links, is an error. What is opened decides, not the path: links may change
/// meanwhile.
/// \param within that folder; empty: a file may lie anywhere
tl::expected<input_file, std::string> open_within(const std::filesystem::path& path,
                                                  const std::string& what,
                                                  const std::filesystem::path& within);

} // namespace troupe
