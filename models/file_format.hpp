// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Recognition of file formats, for error messages about unexpected files.

#include "models/input_file.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// Kinds of file formats, by their use as data or weights.
enum class format_kind : std::uint8_t {
  packed,      ///< A compressed file or an archive.
  pointer,     ///< A stand-in for another file, which is not here.
  safetensors, ///< Weights that troupe reads.
  tokens,      ///< Tokens that troupe reads.
  text,        ///< UTF-8: JSON, HTML, any other text.
  binary,      ///< Any other program's data.
};

/// A file format that users take for a text, tokens, images or weights by mistake.
struct file_format {
  std::string name; ///< "a gzip file".
  format_kind kind = format_kind::binary;
};

/// The format of a file by the first bytes, or of a TensorFlow checkpoint by the last
/// bytes. Absent if the file is of no known format.
/// \throws as input_file::read
std::optional<file_format> format_of(const input_file& file);

/// Advice of a few words on a file of this format; empty if there is no advice.
std::string advice_on(const file_format& format);

/// True if a file has at least `fewest` bytes and begins with printable UTF-8. Tokens
/// of texts with short alphabets are not printable: such tokens have zeros in between.
/// \param fewest smallest size of such a file, at most 512 bytes
bool begins_as_text(const input_file& file, std::int64_t fewest);

/// True if a file's name ends like the name of a packed file: `.gz`, `.zip` and others.
bool is_named_packed(const std::filesystem::path& path);

} // namespace troupe
