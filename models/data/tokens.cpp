// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/tokens.hpp"

#include "models/file_format.hpp"
#include "models/file_within.hpp"
#include "models/utf8.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace troupe {

static_assert(std::endian::native == std::endian::little,
              "token files are little-endian");

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t header_bytes = 256 * sizeof(std::int32_t);
constexpr std::int64_t fewest_of_text = 64; // bytes: no tokens look like it by chance

/// The layout of a file's tokens.
struct layout {
  std::int64_t begin = 0; ///< Of the first token, in bytes.
  std::int64_t width = 2; ///< Bytes a token.
  std::int64_t count = 0;
};

/// The layout of a file without a header. On error the end of a sentence about it.
/// \param width as token_data takes it
tl::expected<layout, std::string> plain_layout(std::int64_t size, std::int64_t width) {
  const std::int64_t used = width == 0 ? 2 : width;
  if (size % used == 0)
    return layout{0, used, size / used};
  return tl::unexpected{"has " + std::to_string(size) + " bytes, "
                        + (used == 2 ? "an odd number; tokens are of 16 bits each"
                                     : "no multiple of 4; tokens are of 32 bits each")};
}

/// A number with its bytes in the opposite order.
constexpr std::int32_t reversed(std::int32_t number) {
  return static_cast<std::int32_t>(
    __builtin_bswap32(static_cast<std::uint32_t>(number)));
}

/// On error the end of a sentence about the file. \param width as token_data takes it
tl::expected<layout, std::string> layout_of(const input_file& file,
                                            std::int64_t width) {
  if (const auto format = format_of(file); format && format->kind != format_kind::text
                                           && format->kind != format_kind::tokens)
    return tl::unexpected{"is " + format->name
                          + "; tokens are read from files as nanoGPT and llm.c write "
                            "them, of an array of numpy's by tofile()"};
  const auto size = file.size();
  std::array<std::int32_t, 3> head{};
  file.read(0, head.data(), std::min<std::int64_t>(size, sizeof head));
  const auto [magic, version, count] = head;
  // Neither begins a nanoGPT file: it would be a token 55432 or 55713, and GPT-2 has
  // 50257.
  constexpr std::int32_t narrow_magic = 20240520, wide_magic = 20240801;
  const bool narrow = magic == narrow_magic, wide = magic == wide_magic;
  if (magic == reversed(narrow_magic) || magic == reversed(wide_magic))
    return tl::unexpected{std::string{
      "has a header of llm.c's with big-endian numbers; little-endian ones are read"}};
  if (!narrow && !wide && width == 0 && begins_as_text(file, fewest_of_text))
    return tl::unexpected{
      std::string{"looks like a text: say text: in place of tokens:, or put "
                  ",width=16 behind the file if it holds tokens of 16 bits"}};
  if (!narrow && !wide)
    return plain_layout(size, width);
  if (size < header_bytes)
    return tl::unexpected{"ends within its header: that has 1024 bytes, the file "
                          + std::to_string(size)};
  if (version != (narrow ? 1 : 7))
    return tl::unexpected{
      "is of version " + std::to_string(version)
      + " of llm.c's format; 1 is read of 16-bit tokens, 7 of 32-bit ones"};
  const layout result{header_bytes, narrow ? 2 : 4, count};
  if (width != 0 && width != result.width)
    return tl::unexpected{"has a header of llm.c's with tokens of "
                          + std::to_string(8 * result.width)
                          + " bits: leave width= out"};
  if (size - header_bytes != count * result.width)
    return tl::unexpected{"has " + std::to_string(size - header_bytes)
                          + " bytes behind its header, which promises "
                          + std::to_string(count) + " tokens of "
                          + std::to_string(result.width) + " bytes"};
  return result;
}

/// Whether numbers twice as wide were written: each second half is 0, or tiny beside
/// large other halves, as the upper half of each token is.
template <class Token>
bool looks_wider(const token_text<Token>& text) {
  constexpr std::size_t at_once = 1 << 20;
  constexpr Token few = 16, many = 256;
  Token lower = 0, upper = 0; // the largest of each
  const auto all = text.tokens;
  for (std::size_t first = 0; first + 1 < all.size() && upper < few; first += at_once) {
    const auto piece = all.subspan(first, std::min(at_once, all.size() - first));
    for (std::size_t i = 0; i + 1 < piece.size(); i += 2) {
      lower = std::max(lower, piece[i]);
      upper = std::max(upper, piece[i + 1]);
    }
    if (text.release)
      text.release(piece);
  }
  return all.size() % 2 == 0
         && ((upper == 0 && lower > 0) || (upper < few && lower >= many));
}

/// Gives pages back to the system, which reads them again where they are needed. Around
/// a page that is read it may have mapped a whole block, so blocks go.
template <class Token>
void give_back(const std::byte* memory, std::int64_t size,
               std::span<const Token> tokens) {
  constexpr std::uintptr_t block = 2 << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory),
             end = begin + static_cast<std::uintptr_t>(size),
             first = reinterpret_cast<std::uintptr_t>(tokens.data()),
             last = first + tokens.size_bytes();
  const auto from = std::max(begin, first / block * block),
             to = std::min(end, (last + block - 1) / block * block);
  madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

template <class Token>
token_text<Token> text_of(const std::shared_ptr<const input_file>& file,
                          const layout& where, std::string name) {
  token_text<Token> result{.name = std::move(name), .unit = "token"};
  if (where.count == 0)
    return result;
  result.owner = file->mapped();
  const auto* const memory = static_cast<const std::byte*>(result.owner.get());
  result.sum.add({memory, static_cast<std::size_t>(where.begin)});
  result.tokens = {reinterpret_cast<const Token*>(memory + where.begin),
                   static_cast<std::size_t>(where.count)};
  result.check = [file] { file->check_size(); }; // no page is read behind its end
  result.release = [memory, size = file->size()](std::span<const Token> tokens) {
    give_back(memory, size, tokens);
  };
  return result;
}

} // namespace

tl::expected<std::shared_ptr<const data_set>, std::string>
token_data(const fs::path& path, text_order order, std::int64_t length,
           std::int64_t words, std::uint64_t seed, std::int64_t width,
           const fs::path& within) {
  auto opened = open_within(path, "the tokens", within);
  if (!opened)
    return tl::unexpected{opened.error()};
  const auto file = std::make_shared<const input_file>(std::move(*opened));
  const auto refuse = [&](const std::string& why) {
    return tl::unexpected{path.string() + " " + why};
  };
  const auto where = layout_of(*file, width);
  if (!where)
    return refuse(where.error());
  const auto open = [&](auto text) {
    return windows_of(std::move(text), order, length, words, seed);
  };
  const auto name = path.filename().string();
  const auto wide = [&] { return text_of<std::uint32_t>(file, *where, name); };
  if (where->width == 4) {
    if (where->begin == 0 && looks_wider(wide()))
      return refuse(
        "looks like numbers of 64 bits, which are not read: write tokens as "
        "uint16 or uint32");
    auto data = open(wide());
    return data ? data : refuse(data.error());
  }
  auto text = text_of<std::uint16_t>(file, *where, name);
  if (where->begin == 0 && width == 0 && looks_wider(text))
    return refuse("looks like numbers of 32 bits: say tokens:FILE,width=32, or "
                  "width=16 if they have 16");
  auto data = open(std::move(text));
  return data ? data : refuse(data.error());
}

} // namespace troupe
