// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/text.hpp"

#include "models/data/data_files.hpp"
#include "models/file_format.hpp"
#include "models/file_within.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe {

namespace {

namespace fs = std::filesystem;
using bytes = std::vector<std::uint8_t>;

/// One sentence if a file is no text; empty if the file can be read as a text.
std::string text_error(const input_file& file, const fs::path& path) {
  const auto format = format_of(file);
  if (!format || format->kind == format_kind::text)
    return {};
  const auto advice = advice_on(*format);
  return path.string() + " is " + format->name
         + (advice.empty() ? ", not a text" : ": " + advice);
}

/// All bytes of the files. Moves packed files to the files that are left out.
tl::expected<bytes, std::string> read_all(data_files& files, const fs::path& within) {
  bytes result;
  std::vector<fs::path> read;
  for (const auto& each : files.read) {
    const auto file = open_within(each, "the text", within);
    if (!file)
      return tl::unexpected{file.error()};
    if (auto error = text_error(*file, each); !error.empty()) {
      if (files.choice != file_choice::folder
          || format_of(*file)->kind == format_kind::pointer)
        return tl::unexpected{std::move(error)};
      files.left_out.push_back(each.filename().string());
      continue;
    }
    const auto offset = result.size();
    result.resize(offset + static_cast<std::size_t>(file->size()));
    file->read(0, result.data() + offset, file->size());
    read.push_back(each);
  }
  files.read = std::move(read);
  std::ranges::sort(files.left_out);
  return result;
}

} // namespace

tl::expected<std::shared_ptr<const data_set>, std::string>
text_data(const fs::path& path, text_order order, std::int64_t length,
          std::int64_t words, std::uint64_t seed, const fs::path& within) {
  auto files = data_files_at(path, within);
  if (!files)
    return tl::unexpected{files.error()};
  auto read = read_all(*files, within);
  if (!read)
    return tl::unexpected{read.error()};
  if (auto error = mixed_files_error(*files); !error.empty())
    return tl::unexpected{std::move(error)};
  const auto owner = std::make_shared<const bytes>(std::move(*read));
  token_text<std::uint8_t> text{
    .files = {}, .name = "text " + name_of(path, *files), .unit = "byte"};
  auto& file = text.files.emplace_back();
  file.tokens = *owner;
  file.owner = owner;
  file.name = path.filename().string();
  auto data = windows_of(std::move(text), order, length, words, seed);
  if (!data)
    return tl::unexpected{(files->choice == file_choice::file
                             ? path.string()
                             : (path.parent_path() / name_of(path, *files)).string())
                          + " " + data.error()};
  return data;
}

} // namespace troupe
