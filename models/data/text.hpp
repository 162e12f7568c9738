// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/windows.hpp"

#include <filesystem>

namespace troupe {

/// Bytes of a file, or of the files of a folder or pattern in order of name
/// (data_files.hpp), as tokens. Of a folder or pattern, hidden files (`.DS_Store`),
/// packed files by name (`.gz`), and everything that is no file are left out. Of a
/// folder, files whose content has a known format other than text (file_format.hpp) are
/// left out as well. In all other cases such a file is an error. A file of no known
/// format counts as text. A pointer of Git LFS that would be read is an error. The
/// description gives the number of files read, and names some of the files left out.
/// Files to train on together with files to evaluate on, by name, are refused. On error
/// one sentence.
/// \param length tokens of a sample
/// \param words size of the vocabulary; each byte must be below `words`
/// \param within folder that must hold every file, after all links; empty: any folder
tl::expected<std::shared_ptr<const data_set>, std::string>
text_data(const std::filesystem::path& path, text_order order, std::int64_t length,
          std::int64_t words, std::uint64_t seed,
          const std::filesystem::path& within = {});

} // namespace troupe
