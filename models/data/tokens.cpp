#include "models/data/tokens.hpp"

#include "models/input_file.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>

namespace troupe {

static_assert(std::endian::native == std::endian::little,
              "token files are little-endian");

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t header_bytes = 256 * sizeof(std::int32_t);

/// What the first numbers of a file say about the others.
struct layout {
  std::int64_t begin = 0; ///< Of the first token, in bytes.
  std::int64_t width = 2; ///< Bytes a token.
  std::int64_t count = 0;
};

/// On error the end of a sentence about the file.
tl::expected<layout, std::string> layout_of(const input_file& file) {
  const auto size = file.size();
  std::array<std::int32_t, 3> head{};
  file.read(0, head.data(), std::min<std::int64_t>(size, sizeof head));
  const auto [magic, version, count] = head;
  // Neither begins a nanoGPT file: it would be a token 55432 or 55713, and GPT-2 has
  // 50257.
  const bool narrow = magic == 20240520, wide = magic == 20240801;
  if (!narrow && !wide) {
    if (size % 2 != 0)
      return tl::unexpected{"has " + std::to_string(size)
                            + " bytes, an odd number; tokens are of 16 bits each"};
    return layout{0, 2, size / 2};
  }
  if (size < header_bytes)
    return tl::unexpected{"ends within its header: that has 1024 bytes, the file "
                          + std::to_string(size)};
  if (version != (narrow ? 1 : 7))
    return tl::unexpected{
      "is of version " + std::to_string(version)
      + " of llm.c's format; 1 is read of 16-bit tokens, 7 of 32-bit ones"};
  const layout result{header_bytes, narrow ? 2 : 4, count};
  if (size - header_bytes != count * result.width)
    return tl::unexpected{"has " + std::to_string(size - header_bytes)
                          + " bytes behind its header, which promises "
                          + std::to_string(count) + " tokens of "
                          + std::to_string(result.width) + " bytes"};
  return result;
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
           std::int64_t words, std::uint64_t seed) {
  auto opened = input_file::open(path, "the tokens");
  if (!opened)
    return tl::unexpected{opened.error()};
  const auto file = std::make_shared<const input_file>(std::move(*opened));
  const auto refuse = [&](const std::string& why) {
    return tl::unexpected{path.string() + " " + why};
  };
  const auto where = layout_of(*file);
  if (!where)
    return refuse(where.error());
  const auto open = [&](auto text) {
    return windows_of(std::move(text), order, length, words, seed);
  };
  const auto name = path.filename().string();
  auto data = where->width == 2 ? open(text_of<std::uint16_t>(file, *where, name))
                                : open(text_of<std::uint32_t>(file, *where, name));
  return data ? data : refuse(data.error());
}

} // namespace troupe
