// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/tokens.hpp"

#include "models/data/data_files.hpp"
#include "models/data/token_layout.hpp"
#include "models/file_format.hpp"
#include "models/file_within.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace troupe {

static_assert(std::endian::native == std::endian::little,
              "token files are little-endian");

namespace {

namespace fs = std::filesystem;

/// Whether the file holds numbers twice as wide: each second half is 0, or tiny beside
/// large first halves, like the upper half of each token.
template <class Token>
bool looks_wider(const token_file<Token>& file) {
  constexpr std::size_t at_once = 1 << 20;
  constexpr Token few = 16, many = 256;
  Token lower = 0, upper = 0; // the largest of each half
  const auto tokens = file.tokens;
  for (std::size_t first = 0; first + 1 < tokens.size() && upper < few;
       first += at_once) {
    const auto piece = tokens.subspan(first, std::min(at_once, tokens.size() - first));
    for (std::size_t i = 0; i + 1 < piece.size(); i += 2) {
      lower = std::max(lower, piece[i]);
      upper = std::max(upper, piece[i + 1]);
    }
    if (file.release)
      file.release(piece);
  }
  return tokens.size() % 2 == 0
         && ((upper == 0 && lower > 0) || (upper < few && lower >= many));
}

/// Returns pages to the system, which loads the pages again when read. Around a page
/// that is read the system may have mapped a whole block, so whole blocks are returned.
template <class Token>
void release_pages(const std::byte* memory, std::int64_t size,
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

/// An open file, and the layout of the file's tokens.
struct opened_tokens {
  std::shared_ptr<const input_file> file;
  token_layout where;
  fs::path path;
};

template <class Token>
token_file<Token> mapped_tokens(const opened_tokens& from) {
  const auto& [file, where, path] = from;
  token_file<Token> result{.tokens = {}, .owner = {}, .name = path.filename().string()};
  if (where.count == 0)
    return result;
  result.owner = file->mapped();
  const auto* const memory = static_cast<const std::byte*>(result.owner.get());
  result.header = {memory, static_cast<std::size_t>(where.begin)};
  result.tokens = {reinterpret_cast<const Token*>(memory + where.begin),
                   static_cast<std::size_t>(where.count)};
  result.check = [file = file] {
    file->check_size();
  }; // no page behind the file's end is read
  result.release = [memory, size = file->size()](std::span<const Token> tokens) {
    release_pages(memory, size, tokens);
  };
  return result;
}

/// The sentence about a file whose numbers are wider than tokens would be; empty if no
/// number is wider. A header or `width=` says how wide tokens are, but 64 bits are
/// never read.
std::string width_error(const opened_tokens& from, std::int64_t width) {
  if (from.where.begin > 0)
    return {};
  if (from.where.width == 4)
    return looks_wider(mapped_tokens<std::uint32_t>(from))
             ? from.path.string()
                 + " looks like numbers of 64 bits, which are not read: write tokens "
                   "as uint16 or uint32"
             : "";
  return width == 0 && looks_wider(mapped_tokens<std::uint16_t>(from))
           ? from.path.string()
               + " looks like numbers of 32 bits: say tokens:FILE,width=32, or "
                 "width=16 for numbers of 16 bits"
           : "";
}

/// Opens the files, and leaves out files of a folder that hold no tokens.
/// \param width,within as token_data takes both
tl::expected<std::vector<opened_tokens>, std::string>
open_files(data_files& files, std::int64_t width, const fs::path& within) {
  std::vector<opened_tokens> result;
  for (const auto& path : files.read) {
    auto opened = open_within(path, "the tokens", within);
    if (!opened)
      return tl::unexpected{opened.error()};
    const auto file = std::make_shared<const input_file>(std::move(*opened));
    if (const auto reason = other_content(*file, width); !reason.empty()) {
      const auto format = format_of(*file);
      const bool is_pointer = format && format->kind == format_kind::pointer;
      if (files.choice != file_choice::folder || is_pointer)
        return tl::unexpected{path.string() + " " + reason};
      files.left_out.push_back(path.filename().string());
      continue;
    }
    const auto where = layout_of(*file, width);
    if (!where)
      return tl::unexpected{path.string() + " " + where.error()};
    result.push_back({file, *where, path});
    if (auto error = width_error(result.back(), width); !error.empty())
      return tl::unexpected{std::move(error)};
    if (const auto& first = result.front(); first.where.width != where->width)
      return tl::unexpected{
        path.string() + " has tokens of " + std::to_string(8 * where->width)
        + " bits, and " + first.path.string() + " of "
        + std::to_string(8 * first.where.width) + ": name files of the same width"};
  }
  files.read.clear();
  for (const auto& opened_file : result)
    files.read.push_back(opened_file.path);
  std::ranges::sort(files.left_out);
  return result;
}

template <class Token>
token_text<Token> text_of(const std::vector<opened_tokens>& files,
                          const std::string& name) {
  token_text<Token> result{.files = {}, .name = name, .unit = "token"};
  for (const auto& opened_file : files)
    result.files.push_back(mapped_tokens<Token>(opened_file));
  return result;
}

} // namespace

tl::expected<std::shared_ptr<const data_set>, std::string>
token_data(const fs::path& path, text_order order, std::int64_t length,
           std::int64_t words, std::uint64_t seed, std::int64_t width,
           const fs::path& within) {
  auto files = data_files_at(path, within);
  if (!files)
    return tl::unexpected{files.error()};
  const auto opened = open_files(*files, width, within);
  if (!opened)
    return tl::unexpected{opened.error()};
  if (auto error = mixed_files_error(*files); !error.empty())
    return tl::unexpected{std::move(error)};
  const auto name = name_of(path, *files);
  if (opened->empty())
    return tl::unexpected{(path.parent_path() / name).string() + " has no tokens"};
  auto data =
    opened->front().where.width == 4
      ? windows_of(text_of<std::uint32_t>(*opened, name), order, length, words, seed)
      : windows_of(text_of<std::uint16_t>(*opened, name), order, length, words, seed);
  return data ? data : tl::unexpected{path.string() + " " + data.error()};
}

} // namespace troupe
