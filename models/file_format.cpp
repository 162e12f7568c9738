// SPDX-License-Identifier: BSD-3-Clause
#include "models/file_format.hpp"

#include "models/utf8.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace troupe {

namespace {

using namespace std::string_view_literals;

struct signature {
  std::string_view bytes;
  const char* name;
  format_kind kind = format_kind::binary;
  std::int64_t begin = 0;
};

constexpr auto packed = format_kind::packed;
constexpr const char* pickle = "a Python pickle";
constexpr const char* pytorch = "a PyTorch file, which is a pickle";

constexpr signature signatures[] = {
  {"\x1f\x8b\x08"sv, "a gzip file", packed},
  {"\xfd"
   "7zXZ\0"sv,
   "an xz file", packed},
  {"\x28\xb5\x2f\xfd"sv, "a zstd file", packed},
  {"1AY&SY"sv, "a bzip2 file", packed, 4},
  {"\x04\x22\x4d\x18"sv, "an lz4 file", packed},
  {"LZIP\x01"sv, "an lzip file", packed},
  {"PK\x03\x04"sv, "a zip file", packed}, // unless zip_content finds more
  {"7z\xbc\xaf\x27\x1c"sv, "a 7z file", packed},
  {"Rar!\x1a\x07"sv, "a RAR file", packed},
  {"ustar"sv, "a tar file", packed, 257},
  {"version https://git-lfs.github.com/spec/"sv, "a Git LFS pointer",
   format_kind::pointer},
  // Weights of other tools.
  {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv, pytorch},
  {"\x80\x02}q"sv, pickle},
  {"\x80\x03}q"sv, pickle},
  {"\x80\x02"
   "ccollections\n"sv,
   pickle},
  {"GGUF"sv, "a GGUF file"},
  {"tjgg"sv, "a GGML file"},
  {"TFL3"sv, "a TensorFlow Lite file", format_kind::binary, 4},
  {"model_checkpoint_path:"sv, "TensorFlow's list of checkpoints", format_kind::text},
  {"\x81\xa6params"sv, "a Flax file"},
  {"\x81\xabtransformer"sv, "a Flax file"},
  {"\xc6\xd7\x34\x01"sv, "a model file of llm.c"}, // 20240326
  // Data of other tools.
  {"\x88\xd8\x34\x01"sv, "a token file of llm.c", format_kind::tokens},
  {"\xa1\xd9\x34\x01"sv, "a token file of llm.c", format_kind::tokens},
  {"\x93NUMPY"sv, "a numpy file"},
  {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
  {"PAR1"sv, "a Parquet file"},
  {"ARROW1"sv, "an Arrow file"},
  {"MMIDIDX\0\0"sv, "an index of Megatron's data"},
  {"MATLAB 5.0 MAT-file"sv, "a MATLAB file"},
  {"SQLite format 3\0"sv, "an SQLite file"},
  {"\x89PNG\r\n\x1a\n"sv, "a PNG image"},
  {"\xff\xd8\xff\xe0\0\x10JFIF"sv, "a JPEG image"},
  {"%PDF-"sv, "a PDF file"},
  {"\x7f"
   "ELF\x02\x01\x01"sv,
   "an ELF program"}};

constexpr const char* packed_names[] = {".gz",  ".xz",  ".zst", ".bz2", ".lz4",
                                        ".lz",  ".Z",   ".zip", ".7z",  ".rar",
                                        ".tar", ".tgz", ".txz", ".tbz2"};

bool is_ascii_text(char c) {
  return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
}

/// Whether bytes are printable UTF-8; the last character may be cut off.
bool is_text(std::string_view bytes) {
  constexpr int longest = 4; // bytes of a character
  std::string text{bytes};
  for (int i = 1; i < longest && !text.empty() && utf8(text) != text; ++i)
    text.pop_back();
  return !text.empty() && utf8(text) == text
         && std::ranges::none_of(text, [](unsigned char c) {
              return (c < ' ' && c != '\n' && c != '\r' && c != '\t') || c == 127;
            });
}

/// Up to 512 of the first bytes.
std::string first_bytes(const input_file& file) {
  const auto size = std::min<std::int64_t>(file.size(), 512);
  std::string result(static_cast<std::size_t>(size), '\0');
  file.read(0, result.data(), size);
  return result;
}

/// A zip archive's format by the name of its first member.
std::optional<file_format> zip_content(std::string_view first) {
  constexpr std::size_t name_begin = 30, length_at = 26;
  if (!first.starts_with("PK\x03\x04") || first.size() < name_begin)
    return {};
  const auto length = static_cast<unsigned char>(first[length_at]);
  const auto name = first.substr(name_begin, length);
  if (name.ends_with(".pkl"))
    return file_format{pytorch};
  if (name.ends_with(".npy"))
    return file_format{"a numpy archive (.npz)"};
  return {};
}

/// A pickle of protocol 4 or 5, whose first frame begins with a length of 8 bytes.
bool is_framed_pickle(std::string_view first) {
  return (first.starts_with("\x80\x04\x95") || first.starts_with("\x80\x05\x95"))
         && first.size() > 11 && first.substr(7, 4) == "\0\0\0\0"sv;
}

/// An ONNX model: a version of one byte, then the name of the program that wrote the
/// file.
bool is_onnx(std::string_view first) {
  constexpr std::size_t fewest = 3, name_begin = 4;
  if (first.size() < 8 || first[0] != '\x08' || first[1] < 1 || first[1] > 32
      || first[2] != '\x12')
    return false;
  const auto length = static_cast<unsigned char>(first[3]);
  const auto name = first.substr(name_begin, length);
  return length >= fewest && name.size() == length
         && std::ranges::all_of(name, is_ascii_text);
}

/// A safetensors file: a header's length below 4 GiB, then JSON.
bool is_safetensors(std::string_view first) {
  return first.size() > 10 && first.substr(4, 4) == "\0\0\0\0"sv
         && (first.substr(8, 2) == "{\"" || first.substr(8, 2) == "{}");
}

/// Whether a file is a checkpoint of TensorFlow. Such checkpoints are tables of
/// LevelDB's form, which end with this number.
bool ends_as_table(const input_file& file) {
  constexpr auto magic = "\x57\xfb\x80\x8b\x24\x75\x47\xdb"sv;
  std::array<char, 8> last{};
  if (file.size() < 48)
    return false;
  file.read(file.size() - std::ssize(last), last.data(), std::ssize(last));
  return std::string_view{last.data(), last.size()} == magic;
}

/// The name of a text's format. \param first bytes of the text
std::string name_of_text(std::string_view first) {
  const auto begin = std::ranges::find_if_not(
    first, [](unsigned char c) { return std::isspace(c) != 0; });
  first.remove_prefix(static_cast<std::size_t>(begin - first.begin()));
  std::string lower{first.substr(0, 16)};
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return std::tolower(c); });
  if (lower.starts_with("<!doctype html") || lower.starts_with("<html"))
    return "a web page (HTML)";
  if (lower.starts_with("<?xml"))
    return "an XML file";
  if (lower.starts_with("{") || lower.starts_with("[{"))
    return "a JSON file";
  return "a text";
}

} // namespace

std::optional<file_format> format_of(const input_file& file) {
  const auto content = first_bytes(file);
  const std::string_view first = content;
  if (auto inside = zip_content(first))
    return inside;
  for (const auto& [bytes, name, kind, begin] : signatures)
    if (std::ssize(first) >= begin
        && first.substr(static_cast<std::size_t>(begin)).starts_with(bytes))
      return file_format{name, kind};
  if (is_framed_pickle(first))
    return file_format{pickle};
  if (is_onnx(first))
    return file_format{"an ONNX file"};
  if (is_safetensors(first))
    return file_format{"a safetensors file", format_kind::safetensors};
  if (ends_as_table(file))
    return file_format{"a TensorFlow checkpoint"};
  if (is_text(first))
    return file_format{name_of_text(first), format_kind::text};
  return std::nullopt;
}

std::string advice_on(const file_format& format) {
  switch (format.kind) {
  case format_kind::packed:
    return "unpack it";
  case format_kind::pointer:
    return "fetch the file that it stands for";
  case format_kind::tokens:
    return "say tokens:FILE";
  case format_kind::safetensors:
  case format_kind::text:
  case format_kind::binary:
    break;
  }
  return {};
}

bool begins_as_text(const input_file& file, std::int64_t fewest) {
  const auto first = first_bytes(file);
  return std::ssize(first) >= fewest && is_text(first);
}

bool is_named_packed(const std::filesystem::path& path) {
  return std::ranges::find(packed_names, path.extension()) != std::end(packed_names);
}

} // namespace troupe
