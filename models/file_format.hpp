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

/// A file format that format_of() recognizes.
struct file_format {
  std::string name; ///< Name with an article, for error messages: "a gzip file".
  format_kind kind = format_kind::binary;
};

/// The format of a file by the first bytes, or of a TensorFlow checkpoint by the last
/// bytes. Absent if the file is of no known format.
/// \throws std::runtime_error if the file has become shorter, or reading fails
std::optional<file_format> format_of(const input_file& file);

/// Advice of a few words on a file of this format; empty if there is no advice.
std::string advice_on(const file_format& format);

/// True if a file has at least `fewest` bytes, and the first 512 bytes (or all bytes of
/// a shorter file) are printable UTF-8. Tokens of 16 bits with values below 256 are not
/// printable, as each second byte is 0.
/// \param fewest smallest size of such a file in bytes, at most 512
/// \throws std::runtime_error if the file has become shorter, or reading fails
bool begins_as_text(const input_file& file, std::int64_t fewest);

/// True if a file's name ends like the name of a packed file: `.gz`, `.zip` and others.
bool is_named_packed(const std::filesystem::path& path);

} // namespace troupe
