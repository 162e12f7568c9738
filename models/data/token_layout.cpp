// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/token_layout.hpp"

#include "models/file_format.hpp"

#include <algorithm>
#include <array>

namespace troupe {

namespace {

constexpr std::int64_t header_bytes = 256 * sizeof(std::int32_t);
constexpr std::int64_t fewest_of_text = 64; // bytes: no tokens look like text by chance

/// The layout of a file without a header. On error the end of a sentence about the
/// file.
/// \param width as token_data takes the width
tl::expected<token_layout, std::string> plain_layout(std::int64_t size,
                                                     std::int64_t width) {
  const std::int64_t used = width == 0 ? 2 : width;
  if (size % used == 0)
    return token_layout{0, used, size / used};
  return tl::unexpected{"has " + std::to_string(size) + " bytes, "
                        + (used == 2 ? "an odd number, but tokens have 16 bits"
                                     : "no multiple of 4, but tokens have 32 bits")};
}

/// A number with its bytes in the opposite order.
constexpr std::int32_t reversed(std::int32_t number) {
  return static_cast<std::int32_t>(
    __builtin_bswap32(static_cast<std::uint32_t>(number)));
}

constexpr std::int32_t narrow_magic = 20240520, wide_magic = 20240801;

} // namespace

std::string other_content(const input_file& file, std::int64_t width) {
  const auto format = format_of(file);
  if (format && format->kind == format_kind::tokens)
    return {};
  if (format && format->kind != format_kind::text)
    return "is " + format->name
           + ", but tokens are read from files of nanoGPT and llm.c, or from an array "
             "of numpy's tofile()";
  if (width == 0 && begins_as_text(file, fewest_of_text))
    return "looks like a text: say text: in place of tokens:, or append ,width=16 to "
           "the path if the file has tokens of 16 bits";
  return {};
}

tl::expected<token_layout, std::string> layout_of(const input_file& file,
                                                  std::int64_t width) {
  const auto size = file.size();
  std::array<std::int32_t, 3> head{};
  file.read(0, head.data(), std::min<std::int64_t>(size, sizeof head));
  const auto [magic, version, count] = head;
  // No nanoGPT file begins with either number: the first token would be 55432 or 55713,
  // and GPT-2 has 50257 tokens.
  const bool narrow = magic == narrow_magic, wide = magic == wide_magic;
  if (magic == reversed(narrow_magic) || magic == reversed(wide_magic))
    return tl::unexpected{
      std::string{"has a header of llm.c's with big-endian numbers, and only "
                  "little-endian numbers are read"}};
  if (!narrow && !wide)
    return plain_layout(size, width);
  if (size < header_bytes)
    return tl::unexpected{"ends within its header of 1024 bytes, after "
                          + std::to_string(size) + " bytes"};
  if (version != (narrow ? 1 : 7))
    return tl::unexpected{
      "is of version " + std::to_string(version)
      + " of llm.c's format; supported are version 1 of 16-bit and 7 of 32-bit tokens"};
  const token_layout result{header_bytes, narrow ? 2 : 4, count};
  if (width != 0 && width != result.width)
    return tl::unexpected{"has a header of llm.c's with tokens of "
                          + std::to_string(8 * result.width)
                          + " bits: leave width= out"};
  if (size - header_bytes != count * result.width)
    return tl::unexpected{"has " + std::to_string(size - header_bytes)
                          + " bytes after its header, which announces "
                          + std::to_string(count) + " tokens of "
                          + std::to_string(result.width) + " bytes"};
  return result;
}

} // namespace troupe
