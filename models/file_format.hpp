// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/input_file.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// Kinds of formats, by the use that data and weights make of such a file.
enum class format_kind : std::uint8_t {
  packed,      ///< A compressed file or an archive.
  pointer,     ///< Stands for another file, which is not here.
  safetensors, ///< Weights that are read.
  tokens,      ///< Tokens that are read.
  text,        ///< UTF-8: JSON, HTML, any other.
  binary,      ///< Any other program's.
};

/// A file format that people take for a text, tokens, images or weights by mistake.
struct file_format {
  std::string name; ///< "a gzip file".
  format_kind kind = format_kind::binary;
};

/// The format that the first bytes of a file show; absent if none of the known formats
/// begins so. \throws as input_file::read
std::optional<file_format> format_of(const input_file& file);

/// Advice of a few words on a file of a format; empty without any.
std::string advice_on(const file_format& format);

/// Whether the first bytes of a file are printable UTF-8; tokens of texts that short
/// alphabets make have zeros between them. \param fewest bytes of such a file
bool begins_as_text(const input_file& file, std::int64_t fewest);

/// Whether a file's name ends as those of packed files do: `.gz`.
bool is_named_packed(const std::filesystem::path& path);

} // namespace troupe
