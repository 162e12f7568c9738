#include "experiments/support/output_places.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>

namespace troupe {

namespace {

using std::filesystem::path;

/// Where a file really stands, be it there or not: behind its links, in a folder
/// without any.
path resolved(path file) {
  constexpr int most_links = 40; // as many as Linux follows
  std::error_code failed;
  file = std::filesystem::absolute(file, failed);
  for (int i = 0; i < most_links && std::filesystem::is_symlink(file, failed); ++i)
    file = file.parent_path() / std::filesystem::read_symlink(file, failed);
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

/// The folder that a file stands in.
path folder_of(const path& file) {
  return file.has_parent_path() ? file.parent_path() : path{"."};
}

} // namespace

std::string written_twice(const std::vector<named_file>& written,
                          const std::vector<named_file>& read) {
  std::map<path, std::string> known; // where each file stands, and who names it
  for (const auto& [option, file] : read)
    known.emplace(resolved(file), option);
  for (const auto& [option, file] : written)
    if (const auto [other, is_new] = known.emplace(resolved(file), option); !is_new)
      return other->second + " and " + option + " both name the file " + file.string()
             + ": give each a file of its own";
  return {};
}

std::string unwritable(const named_file& file) {
  const auto place = resolved(file.path);
  const auto why = [&](const std::string& what) {
    return file.option + ": cannot write " + file.path.string() + ": " + what;
  };
  std::error_code failed;
  const auto about = std::filesystem::status(place, failed);
  if (about.type() == std::filesystem::file_type::none)
    return why(failed.message());
  if (std::filesystem::is_directory(about) || !file.path.has_filename())
    return why("this is a folder: name a file");
  if (is_stream(file.path)
      || (std::filesystem::exists(about) && !std::filesystem::is_regular_file(about)))
    return why("this is not a file that can be replaced: name another");
  if (std::filesystem::exists(about) && access(place.c_str(), W_OK) != 0)
    return why("the file is protected from writing: name another");
  if (!std::filesystem::is_directory(folder_of(place), failed))
    return why("there is no folder " + folder_of(file.path).string());
  // Only making a file shows that one can be made.
  auto trial = (folder_of(place) / ".troupe-XXXXXX").string();
  const int made = mkstemp(trial.data());
  if (made < 0)
    return why(std::error_code{errno, std::generic_category()}.message());
  close(made);
  unlink(trial.c_str());
  return {};
}

path make_new_folder(const path& name, std::error_code& failed) {
  if (name.has_parent_path())
    std::filesystem::create_directories(name.parent_path(), failed);
  auto result = name;
  for (int i = 2; !failed && !std::filesystem::create_directory(result, failed); ++i)
    result = name.string() + "-" + std::to_string(i);
  return result;
}

folder_lock::~folder_lock() {
  if (folder_ >= 0)
    close(folder_);
}

bool folder_lock::take(const path& folder) {
  folder_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return folder_ < 0 || flock(folder_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

} // namespace troupe
