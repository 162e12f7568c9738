// SPDX-License-Identifier: BSD-3-Clause
#include "models/file_format.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {

namespace {

using namespace std::string_view_literals;

struct signature {
  std::string_view bytes;
  const char* name;
  bool is_packed;
  std::int64_t begin = 0;
};

constexpr signature signatures[] = {
  {"\x1f\x8b\x08"sv, "a gzip file", true},
  {"\xfd"
   "7zXZ\0"sv,
   "an xz file", true},
  {"\x28\xb5\x2f\xfd"sv, "a zstd file", true},
  {"1AY&SY"sv, "a bzip2 file", true, 4},
  {"\x04\x22\x4d\x18"sv, "an lz4 file", true},
  {"LZIP\x01"sv, "an lzip file", true},
  {"PK\x03\x04"sv, "a zip file", true}, // .pt, .npz too
  {"7z\xbc\xaf\x27\x1c"sv, "a 7z file", true},
  {"Rar!\x1a\x07"sv, "a RAR file", true},
  {"ustar"sv, "a tar file", true, 257},
  {"\x93NUMPY"sv, "a numpy file", false},
  {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file", false},
  {"PAR1"sv, "a Parquet file", false},
  {"ARROW1"sv, "an Arrow file", false},
  {"GGUF"sv, "a GGUF file", false},
  {"MMIDIDX\0\0"sv, "an index of Megatron's data", false},
  {"SQLite format 3\0"sv, "an SQLite file", false},
  {"version https://git-lfs.github.com/spec/"sv, "a Git LFS pointer", false}};

constexpr const char* packed_names[] = {".gz",  ".xz",  ".zst", ".bz2", ".lz4",
                                        ".lz",  ".Z",   ".zip", ".7z",  ".rar",
                                        ".tar", ".tgz", ".txz", ".tbz2"};

} // namespace

std::optional<file_format> format_of(const input_file& file) {
  std::array<char, 512> first{};
  const auto size = std::min<std::int64_t>(file.size(), first.size());
  file.read(0, first.data(), size);
  const std::string_view known{first.data(), static_cast<std::size_t>(size)};
  for (const auto& [bytes, name, is_packed, begin] : signatures)
    if (std::ssize(known) >= begin
        && known.substr(static_cast<std::size_t>(begin)).starts_with(bytes))
      return file_format{name, is_packed, bytes.starts_with("version")};
  return std::nullopt;
}

bool is_named_packed(const std::filesystem::path& path) {
  return std::ranges::find(packed_names, path.extension()) != std::end(packed_names);
}

} // namespace troupe
