// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/windows.hpp"

#include <filesystem>

namespace troupe {

/// Bytes of a file, or of the files of a folder or pattern in order of name
/// (data_files.hpp), as tokens. Of a folder hidden files (`.DS_Store`), packed ones
/// (`.gz`, by name or content), other tools' binary files and all but files are left
/// out; the description says how many were read, and names some of the others. Such a
/// file that is named itself, or a pointer of Git LFS, is refused.
/// \param within as open_data takes it
tl::expected<std::shared_ptr<const data_set>, std::string>
text_data(const std::filesystem::path& path, text_order order, std::int64_t length,
          std::int64_t words, std::uint64_t seed,
          const std::filesystem::path& within = {});

} // namespace troupe
