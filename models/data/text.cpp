// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/text.hpp"

#include "models/file_format.hpp"
#include "models/file_within.hpp"

#include <algorithm>
#include <vector>

namespace troupe {

namespace {

namespace fs = std::filesystem;
using bytes = std::vector<std::uint8_t>;

/// The files of a text, and what else its folder holds.
struct text_files {
  bool is_folder = false;
  std::vector<fs::path> read;
  std::vector<std::string> left_out; ///< Names; those of folders end with a slash.
};

/// Whether a file of a folder is none of its texts by its name.
bool is_hidden_or_packed(const fs::path& path) {
  return path.filename().string().starts_with('.') || is_named_packed(path);
}

/// The file itself, or those in a folder, in order of name.
tl::expected<text_files, std::string> files_of(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed))
    return text_files{.read = {path}, .left_out = {}};
  text_files result{.is_folder = true, .read = {}, .left_out = {}};
  fs::directory_iterator entry{path, failed};
  for (const fs::directory_iterator end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code unknown; // of one that is gone, say
    if (entry->is_regular_file(unknown) && !is_hidden_or_packed(entry->path()))
      result.read.push_back(entry->path());
    else
      result.left_out.push_back(entry->path().filename().string()
                                + (entry->is_directory(unknown) ? "/" : ""));
  }
  if (failed)
    return tl::unexpected{"cannot read the folder " + path.string() + ": "
                          + failed.message()};
  std::ranges::sort(result.read);
  return result;
}

/// What is wrong with a file as a text; empty if nothing is.
std::string refusal_of(const input_file& file, const fs::path& path) {
  const auto format = format_of(file);
  if (!format || format->kind == format_kind::text)
    return {};
  const auto advice = advice_on(*format);
  return path.string() + " is " + format->name
         + (advice.empty() ? ", not a text" : ": " + advice);
}

/// All bytes of the files; moves packed ones to those that are left out.
tl::expected<bytes, std::string> read_all(text_files& files, const fs::path& within) {
  bytes result;
  std::vector<fs::path> read;
  for (const auto& each : files.read) {
    const auto file = open_within(each, "the text", within);
    if (!file)
      return tl::unexpected{file.error()};
    if (auto wrong = refusal_of(*file, each); !wrong.empty()) {
      if (!files.is_folder || format_of(*file)->kind == format_kind::pointer)
        return tl::unexpected{std::move(wrong)};
      files.left_out.push_back(each.filename().string());
      continue;
    }
    const auto before = result.size();
    result.resize(before + static_cast<std::size_t>(file->size()));
    file->read(0, result.data() + before, file->size());
    read.push_back(each);
  }
  files.read = std::move(read);
  std::ranges::sort(files.left_out);
  return result;
}

/// "a.txt", or of a folder "corpus (2 files read, 1 left out: .DS_Store)".
std::string name_of(const fs::path& path, const text_files& files) {
  const auto last = path.has_filename() ? path : path.parent_path();
  auto result = last.filename().string();
  if (!files.is_folder)
    return result;
  const auto count = files.read.size(), others = files.left_out.size();
  result += " (" + std::to_string(count) + (count == 1 ? " file" : " files") + " read";
  constexpr std::size_t most_named = 3;
  for (std::size_t i = 0; i < std::min(others, most_named); ++i)
    result += (i == 0 ? ", " + std::to_string(others) + " left out: " : ", ")
              + files.left_out[i];
  return result + (others > most_named ? ", ..)" : ")");
}

} // namespace

tl::expected<std::shared_ptr<const data_set>, std::string>
text_data(const fs::path& path, text_order order, std::int64_t length,
          std::int64_t words, std::uint64_t seed, const fs::path& within) {
  auto files = files_of(path);
  if (!files)
    return tl::unexpected{files.error()};
  auto read = read_all(*files, within);
  if (!read)
    return tl::unexpected{read.error()};
  const auto owner = std::make_shared<const bytes>(std::move(*read));
  auto data =
    windows_of<std::uint8_t>({*owner, owner, "text " + name_of(path, *files), "byte"},
                             order, length, words, seed);
  if (!data)
    return tl::unexpected{(files->is_folder
                             ? (path.parent_path() / name_of(path, *files)).string()
                             : path.string())
                          + " " + data.error()};
  return data;
}

} // namespace troupe
