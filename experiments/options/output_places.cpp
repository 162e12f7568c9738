// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/output_places.hpp"

#include "models/whole_file.hpp"

#include <algorithm>
#include <ctime>
#include <map>

namespace troupe {

namespace {

using std::filesystem::path;

/// The real path of a file, whether or not the file exists: after all links, in a
/// folder without links. Links that form a loop stay unresolved.
path resolved(path file) {
  std::error_code failed;
  file = std::filesystem::absolute(file, failed);
  file = without_links(file).value_or(file);
  auto result = std::filesystem::weakly_canonical(file, failed);
  if (failed)
    result = file;
  return result.has_filename() ? result : result.parent_path(); // "c/"
}

bool is_file(const named_file& place) {
  return place.type == named_file::kind::file;
}

bool is_shared(const named_file& place) {
  return place.type == named_file::kind::shared_folder;
}

/// The sentence about two places with the same path.
std::string same_place(const named_file& a, const named_file& b) {
  const auto name = b.path.string();
  if (is_file(a) != is_file(b))
    return (is_file(a) ? a : b).option + " names the file " + name + ", and "
           + (is_file(a) ? b : a).option
           + " the folder of that name: give each option another path";
  const std::string noun = is_file(a) ? "file" : "folder";
  return a.option + " and " + b.option + " both name the " + noun + " " + name
         + ": give each option another " + noun;
}

/// One sentence about two places that cannot both be written, else an empty text.
std::string conflict_of(const std::vector<named_file>& written) {
  std::map<path, const named_file*> known;
  for (const auto& place : written) {
    const auto [same, is_new] = known.emplace(resolved(place.path), &place);
    if (is_new)
      continue;
    const auto& other = *same->second;
    const bool may_share = !is_file(place) && !is_file(other)
                           && place.option != other.option
                           && (is_shared(place) || is_shared(other));
    if (!may_share)
      return same_place(other, place);
  }
  for (const auto& [real, place] : known)
    for (auto above = real.parent_path(); above != above.root_path();
         above = above.parent_path())
      if (const auto file = known.find(above);
          file != known.end() && is_file(*file->second))
        return file->second->option + " names the file " + file->second->path.string()
               + ", and " + place->option + " " + place->path.string()
               + " needs a folder of that name: give either option another path";
  return {};
}

/// Whether the path names an open stream. Replacing the file behind the stream would
/// lose other text that is written there.
bool is_stream(const path& file) {
  std::error_code failed;
  const auto text = std::filesystem::absolute(file, failed).lexically_normal().string();
  return text.starts_with("/dev/std") || text.starts_with("/dev/fd/");
}

} // namespace

std::string written_twice(const std::vector<named_file>& written,
                          const std::vector<named_file>& read) {
  std::map<path, const named_file*> known; // by the real path
  for (const auto& file : read)
    known.emplace(resolved(file.path), &file);
  for (const auto& place : written) {
    const auto real = resolved(place.path);
    const auto is_above = [&](const named_file& other) {
      return is_shared(other) && resolved(other.path) == real.parent_path();
    };
    if (!is_file(place) && std::ranges::none_of(written, is_above))
      continue;
    const auto folder = known.find(real.parent_path());
    if (std::error_code failed;
        folder != known.end() && std::filesystem::is_directory(folder->first, failed))
      return place.option + " " + place.path.string() + " is in the folder that "
             + folder->second->option + " reads: name a place outside that folder";
    if (const auto file = known.find(real); file != known.end())
      return same_place(*file->second, place);
  }
  return conflict_of(written);
}

std::string write_error(const named_file& file) {
  const auto error = is_stream(file.path)
                       ? "cannot write " + file.path.string()
                           + ", which is not a file that can be replaced"
                       : writability_error(file.path);
  return error.empty() ? "" : file.option + ": " + error;
}

path make_new_folder(const path& name, std::error_code& failed) {
  if (name.has_parent_path())
    std::filesystem::create_directories(name.parent_path(), failed);
  auto result = name;
  for (int i = 2; !failed && !std::filesystem::create_directory(result, failed); ++i)
    result = name.string() + "-" + std::to_string(i);
  return result;
}

path make_dated_folder(const std::string& start, std::error_code& failed) {
  char time[64];
  const auto now = std::time(nullptr);
  std::strftime(time, sizeof time, "-%Y%m%d-%H%M%S", std::localtime(&now));
  return make_new_folder(start + time, failed);
}

} // namespace troupe
