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
  file,   ///< The path is the file.
  folder, ///< The path is a folder, and all files in the folder are read.
  /// The last part of the path has `*`, `?` or `[`, as in a shell, and no file has
  /// exactly that name.
  pattern,
};

/// Files to read, in order of name, and the names left out. With a pattern, only names
/// that match the pattern count as left out.
struct data_files {
  file_choice choice = file_choice::file;
  std::vector<std::filesystem::path> read;
  std::vector<std::string> left_out = {}; ///< Names; names of folders end with a slash.
};

/// The files of a path. Of a folder or pattern, hidden files, packed files (`.gz`, by
/// name) and everything that is no regular file are left out. A path of one file is not
/// checked. On error one sentence: a folder cannot be read or is outside `within`, or
/// no file is left that matches the pattern.
/// \param within folder that must hold the folder that is read; empty: any folder.
/// open_within() checks the files
tl::expected<data_files, std::string>
data_files_at(const std::filesystem::path& path, const std::filesystem::path& within);

/// The path's last part: "a.txt". A folder or pattern adds a summary with up to three
/// names of files left out: "corpus (2 files read, a.txt to b.txt, 1 left out:
/// .DS_Store)".
std::string name_of(const std::filesystem::path& path, const data_files& files);

/// Returns one sentence if a folder or pattern has files to train on together with
/// files to evaluate on, by their names; else an empty string.
std::string mixed_files_error(const data_files& files);

} // namespace troupe
