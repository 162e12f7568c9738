// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/input_file.hpp"

#include <optional>
#include <string>

namespace troupe {

/// A file format that people take for a text, tokens, images or weights by mistake.
struct file_format {
  std::string name;        ///< "a gzip file".
  bool is_packed = false;  ///< A compressed file or an archive.
  bool is_pointer = false; ///< It stands for another file, which is not here.
};

/// The format that the first bytes of a file show; absent if it is none of those known.
/// \throws as input_file::read
std::optional<file_format> format_of(const input_file& file);

/// Whether a file's name ends as those of packed files do: `.gz`.
bool is_named_packed(const std::filesystem::path& path);

} // namespace troupe
