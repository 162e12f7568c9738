// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/data_files.hpp"

#include "models/file_format.hpp"
#include "models/file_within.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// Whether a file of a folder is no data, judged by the file's name.
bool is_hidden_or_packed(const fs::path& path) {
  return path.filename().string().starts_with('.') || is_named_packed(path);
}

file_choice choice_of(const fs::path& path) {
  std::error_code failed;
  if (fs::is_directory(path, failed))
    return file_choice::folder;
  const bool has_sign =
    path.filename().string().find_first_of("*?[") != std::string::npos;
  return has_sign && !fs::exists(path, failed) ? file_choice::pattern
                                               : file_choice::file;
}

bool matches(const fs::path& pattern, const fs::path& name) {
  return fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0;
}

/// Whether a name contains one of some words, as a whole run of letters.
bool has_word(const std::string& name, std::initializer_list<std::string_view> words) {
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  for (auto begin = name.begin(); begin != name.end();) {
    begin = std::find_if(begin, name.end(), is_letter);
    const auto end = std::find_if_not(begin, name.end(), is_letter);
    if (std::ranges::find(words, std::string_view{begin, end}) != words.end())
      return true;
    begin = end;
  }
  return false;
}

} // namespace

tl::expected<data_files, std::string> data_files_at(const fs::path& path,
                                                    const fs::path& within) {
  data_files result{.choice = choice_of(path), .read = {path}};
  if (result.choice == file_choice::file)
    return result;
  result.read.clear();
  const bool has_pattern = result.choice == file_choice::pattern;
  const auto folder = has_pattern ? path.parent_path() : path;
  const auto refuse = [&](const std::string& why) {
    return tl::unexpected{"cannot read the folder "
                          + (folder.empty() ? "." : folder.string()) + ": " + why};
  };
  std::error_code failed;
  if (!within.empty() && !leads_into(within, fs::absolute(folder, failed)))
    return refuse("it is outside the folder that may be read (--folder)");
  fs::directory_iterator entry{folder.empty() ? "." : folder, failed};
  for (const fs::directory_iterator end; !failed && entry != end;
       entry.increment(failed)) {
    const auto name = entry->path().filename();
    if (has_pattern && !matches(path.filename(), name))
      continue;
    std::error_code unknown; // an entry may be gone meanwhile
    if (entry->is_regular_file(unknown) && !is_hidden_or_packed(name))
      result.read.push_back(folder / name);
    else
      result.left_out.push_back(name.string()
                                + (entry->is_directory(unknown) ? "/" : ""));
  }
  if (failed)
    return refuse(failed.message());
  if (has_pattern && result.read.empty())
    return tl::unexpected{"no file that can be read matches " + path.string()};
  std::ranges::sort(result.read);
  std::ranges::sort(result.left_out);
  return result;
}

std::string name_of(const fs::path& path, const data_files& files) {
  const auto last = path.has_filename() ? path : path.parent_path();
  auto result = last.filename().string();
  if (files.choice == file_choice::file)
    return result;
  const auto count = files.read.size(), left_out_count = files.left_out.size();
  result += " (" + std::to_string(count) + (count == 1 ? " file" : " files") + " read";
  if (count > 1)
    result += ", " + files.read.front().filename().string() + " to "
              + files.read.back().filename().string();
  constexpr std::size_t most_named = 3;
  for (std::size_t i = 0; i < std::min(left_out_count, most_named); ++i)
    result += (i == 0 ? ", " + std::to_string(left_out_count) + " left out: " : ", ")
              + files.left_out[i];
  return result + (left_out_count > most_named ? ", ..)" : ")");
}

std::string mixed_files_error(const data_files& files) {
  const auto find = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::find_if(files.read, [&](const fs::path& path) {
      return has_word(path.filename().string(), words);
    });
  };
  const auto training = find({"train", "training"}),
             evaluation = find({"val", "valid", "validation", "test", "eval", "dev"});
  if (files.choice == file_choice::file || training == files.read.end()
      || evaluation == files.read.end())
    return {};
  return training->string() + " is training data and " + evaluation->string()
         + " is evaluation data: name training data by --data and evaluation data by "
           "--evaluate-data";
}

} // namespace troupe
