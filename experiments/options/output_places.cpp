// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/output_places.hpp"

#include "models/whole_file.hpp"

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
  const auto result = std::filesystem::weakly_canonical(file, failed);
  return failed ? file : result;
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
  // real path of each file, and the option that names it
  std::map<path, std::string> known;
  for (const auto& [option, file] : read)
    known.emplace(resolved(file), option);
  for (const auto& [option, file] : written) {
    const auto folder = known.find(resolved(file).parent_path());
    if (std::error_code failed;
        folder != known.end() && std::filesystem::is_directory(folder->first, failed))
      return option + " " + file.string() + " is in the folder that " + folder->second
             + " reads: name a place outside that folder";
    if (const auto [known_file, is_new] = known.emplace(resolved(file), option);
        !is_new)
      return known_file->second + " and " + option + " both name the file "
             + file.string() + ": give each option another file";
  }
  return {};
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

} // namespace troupe
