// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/output_places.hpp"

#include "models/whole_file.hpp"

#include <map>

namespace troupe {

namespace {

using std::filesystem::path;

/// Where a file really stands, be it there or not: behind its links, in a folder
/// without any. Links that lead to themselves stand where they are.
path resolved(path file) {
  std::error_code failed;
  file = std::filesystem::absolute(file, failed);
  file = without_links(file).value_or(file);
  const auto result = std::filesystem::weakly_canonical(file, failed);
  return failed ? file : result;
}

/// Whether this names an open stream: replacing the file behind it would lose what else
/// is written there.
bool is_stream(const path& file) {
  std::error_code failed;
  const auto text = std::filesystem::absolute(file, failed).lexically_normal().string();
  return text.starts_with("/dev/std") || text.starts_with("/dev/fd/");
}

} // namespace

std::string written_twice(const std::vector<named_file>& written,
                          const std::vector<named_file>& read) {
  std::map<path, std::string> known; // where each file stands, and who names it
  for (const auto& [option, file] : read)
    known.emplace(resolved(file), option);
  for (const auto& [option, file] : written) {
    const auto folder = known.find(resolved(file).parent_path());
    if (std::error_code failed;
        folder != known.end() && std::filesystem::is_directory(folder->first, failed))
      return option + ": " + file.string() + " is in the folder that " + folder->second
             + " reads: name a place outside it";
    if (const auto [other, is_new] = known.emplace(resolved(file), option); !is_new)
      return other->second + " and " + option + " both name the file " + file.string()
             + ": give each a file of its own";
  }
  return {};
}

std::string unwritable(const named_file& file) {
  const auto wrong =
    is_stream(file.path)
      ? "cannot write " + file.path.string() + ": it is not a file that can be replaced"
      : refusal_to_write(file.path);
  return wrong.empty() ? "" : file.option + ": " + wrong;
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
