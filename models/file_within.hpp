// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Files that must lie in one folder, whatever links their paths go through.

#include "models/input_file.hpp"

namespace troupe {

/// True if a path leads to a location in a folder, after all links of the path and of
/// the folder are resolved. The folder itself counts as in the folder. A relative path
/// begins at the folder. The path need not exist; false if the folder does not exist.
bool leads_into(const std::filesystem::path& folder, const std::filesystem::path& path);

/// Opens a file as input_file::open does. A file outside the folder `within`, after all
/// links, is an error. The path is checked before the file is opened. The opened file
/// is checked again, as links may change meanwhile. The second check needs /proc:
/// without /proc every file is an error, unless `within` is empty.
/// \param path if relative, begins at the current folder
/// \param within the folder; empty: a file may lie anywhere, and nothing is checked
tl::expected<input_file, std::string> open_within(const std::filesystem::path& path,
                                                  const std::string& description,
                                                  const std::filesystem::path& within);

} // namespace troupe
