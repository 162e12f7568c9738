// SPDX-License-Identifier: BSD-3-Clause
#include "models/file_within.hpp"

#include <algorithm>
#include <system_error>

namespace troupe {

namespace {

namespace fs = std::filesystem;

bool begins_with(const fs::path& path, const fs::path& folder) {
  const auto [end, rest] = std::ranges::mismatch(folder, path);
  return end == folder.end();
}

/// The path of an open file, with all links resolved; empty where /proc is missing.
fs::path location_of(const input_file& file) {
  std::error_code unknown;
  return fs::read_symlink("/proc/self/fd/" + std::to_string(file.number()), unknown);
}

} // namespace

bool leads_into(const fs::path& folder, const fs::path& path) {
  std::error_code failed;
  const auto root = fs::canonical(folder, failed);
  if (failed)
    return false;
  const auto location = fs::weakly_canonical(root / path, failed);
  return !failed && begins_with(location, root);
}

tl::expected<input_file, std::string> open_within(const fs::path& path,
                                                  const std::string& description,
                                                  const fs::path& within) {
  if (within.empty())
    return input_file::open(path, description);
  const auto outside = [&] {
    return tl::unexpected{"cannot read " + description + " " + path.string()
                          + ": it is outside the folder that may be read (--folder)"};
  };
  std::error_code failed;
  if (!leads_into(within, fs::absolute(path, failed)))
    return outside();
  auto file = input_file::open(path, description);
  if (file && !begins_with(location_of(*file), fs::canonical(within, failed)))
    return outside();
  return file;
}

} // namespace troupe
