// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The files that a path of data names: a file, a folder, or a pattern of names.

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// Ways in which a path names files.
enum class file_choice : std::uint8_t {
  file,    ///< The path is the file.
  folder,  ///< The path is a folder, and all files in the folder are read.
  pattern, ///< The last part of the path has `*`, `?` or `[..]`, as in a shell.
};

/// Files to read, in order of name, and the other names in the folder.
struct data_files {
  file_choice choice = file_choice::file;
  std::vector<std::filesystem::path> read;
  std::vector<std::string> left_out = {}; ///< Names; names of folders end with a slash.
};

/// The files of a path. Hidden and packed files (`.gz`, by name) of a folder or pattern
/// are left out. On error one sentence: a folder cannot be read, or no file matches the
/// pattern.
/// \param within folder that must hold every file, as for open_data()
tl::expected<data_files, std::string>
data_files_at(const std::filesystem::path& path, const std::filesystem::path& within);

/// The path's last part, and for several files a summary: "a.txt", or "corpus (2 files
/// read, a.txt to b.txt, 1 left out: .DS_Store)".
std::string name_of(const std::filesystem::path& path, const data_files& files);

/// Returns one sentence if a folder or pattern has files to train on together with
/// files to evaluate on, by their names; else an empty string.
std::string mixed_files_error(const data_files& files);

} // namespace troupe
