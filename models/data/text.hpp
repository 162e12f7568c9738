// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/windows.hpp"

#include <filesystem>

namespace troupe {

/// Bytes of a file, or of the files of a folder or pattern in order of name
/// (data_files.hpp), as tokens. In a folder, hidden files (`.DS_Store`) and packed
/// files (`.gz`, by name or content) are left out. So are other tools' binary files,
/// and everything that is no file. The description gives the number of files read, and
/// names some of the files left out. Such a file that is named itself is refused; so is
/// a pointer of Git LFS.
/// \param within as open_data takes the folder
tl::expected<std::shared_ptr<const data_set>, std::string>
text_data(const std::filesystem::path& path, text_order order, std::int64_t length,
          std::int64_t words, std::uint64_t seed,
          const std::filesystem::path& within = {});

} // namespace troupe
