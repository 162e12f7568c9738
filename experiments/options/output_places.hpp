// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// A file that a program reads or writes, and the option that names it.
struct named_file {
  std::string option;
  std::filesystem::path path;
};

/// The first two options that name one file, one of them to write it, in a sentence;
/// empty if there are none. A file is the same however it is spelled, and through
/// links.
std::string written_twice(const std::vector<named_file>& written,
                          const std::vector<named_file>& read);

/// Why a file cannot be written where an option names it, in a sentence; empty if it
/// can. What is there stays as it is.
std::string unwritable(const named_file& file);

/// A folder of this name, or with -2, -3, ... behind it, that nobody had before. On
/// failure `failed` says why.
std::filesystem::path make_new_folder(const std::filesystem::path& name,
                                      std::error_code& failed);

} // namespace troupe
