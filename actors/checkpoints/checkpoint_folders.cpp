// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/checkpoint_folders.hpp"

#include "models/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace troupe {

namespace fs = std::filesystem;

namespace {

constexpr const char* unfinished = ".unfinished";

/// True if the folder has a manifest and is no symbolic link: a link's files belong to
/// another folder.
bool has_manifest(const fs::path& folder) {
  std::error_code failed;
  return !fs::is_symlink(folder, failed)
         && fs::is_regular_file(folder / manifest_name, failed);
}

/// Removes the files of a checkpoint, and then the folder if it is empty.
void remove_files(const fs::path& folder) {
  std::error_code failed;
  if (fs::is_symlink(folder, failed))
    return;
  for (const auto& file : list_folder(folder).entries) {
    const auto name = file.filename().string();
    if (name == manifest_name || file.extension() == ".safetensors"
        || name.starts_with(".troupe-"))
      fs::remove(file, failed);
  }
  fs::remove(folder, failed); // if the folder is empty
}

} // namespace

int batches_of(const fs::path& folder) {
  const auto name = folder.filename().string();
  const std::string_view begin = "batch-";
  int result = 0;
  const auto* const end = name.data() + name.size();
  if (!name.starts_with(begin))
    return -1;
  if (name.size() > begin.size() + 1 && name[begin.size()] == '0')
    return -1; // no checkpoint's name has leading zeros
  const auto [rest, fault] = std::from_chars(name.data() + begin.size(), end, result);
  return rest == end && fault == std::errc{} && result >= 0 ? result : -1;
}

folder_listing list_folder(const fs::path& folder) {
  folder_listing result;
  auto& error = result.error;
  for (fs::directory_iterator entry{folder, error}, end; !error && entry != end;
       entry.increment(error))
    result.entries.push_back(entry->path());
  if (error == std::errc::no_such_file_or_directory
      || error == std::errc::not_a_directory)
    error.clear();
  return result;
}

namespace {

/// named_entries_in() for a folder that has been listed.
std::vector<fs::path> named_entries(const fs::path& folder,
                                    const folder_listing& listed) {
  if (listed.error) // a newer checkpoint may be among the rest
    throw std::runtime_error("cannot read the folder " + folder.string() + ": "
                             + listed.error.message());
  std::vector<fs::path> result;
  for (const auto& entry : listed.entries)
    if (batches_of(entry) >= 0)
      result.push_back(entry);
  std::ranges::sort(result, std::greater{}, batches_of);
  return result;
}

} // namespace

std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  return checkpoints_in(folder, list_folder(folder));
}

std::vector<fs::path> checkpoints_in(const fs::path& folder,
                                     const folder_listing& listed) {
  auto result = named_entries(folder, listed);
  std::erase_if(result, [](const auto& entry) { return !is_checkpoint(entry); });
  return result;
}

std::vector<fs::path> named_entries_in(const fs::path& folder) {
  return named_entries(folder, list_folder(folder));
}

std::string manifest_error(const fs::path& entry) {
  const auto file = entry / manifest_name;
  std::error_code failed;
  const auto status = fs::status(file, failed);
  if (fs::is_regular_file(status))
    return {};
  if (fs::exists(status))
    return file.string() + " is not a regular file";
  return status.type() == fs::file_type::not_found
           ? entry.string() + " has no " + manifest_name + ", and is no checkpoint"
           : "cannot read " + file.string() + ": " + failed.message();
}

std::string unknown_manifest_error(const fs::path& entry) {
  std::error_code failed;
  return fs::status_known(fs::status(entry / manifest_name, failed))
           ? ""
           : manifest_error(entry);
}

std::string taken_name_error(const fs::path& name) {
  std::error_code failed;
  const auto status = fs::symlink_status(name, failed);
  const bool is_free =
    status.type() == fs::file_type::not_found
    || (fs::is_directory(status) && fs::is_empty(name, failed) && !failed);
  return is_free || has_manifest(name)
           ? ""
           : name.string()
               + " is no checkpoint, but has the name of a new checkpoint: rename it, "
                 "or give --checkpoint another folder";
}

bool is_checkpoint(const fs::path& folder) {
  std::error_code failed;
  return fs::is_regular_file(folder / manifest_name, failed);
}

std::vector<fs::path> checkpoints_at(const fs::path& path) {
  if (!is_checkpoint(path))
    return checkpoints_in(path);
  return {path.has_filename() ? path : path.parent_path()}; // "c/batch-8/"
}

std::string no_checkpoint_in(const fs::path& folder) {
  std::error_code failed;
  if (fs::is_regular_file(folder, failed))
    return folder.string() + " is a file, and a checkpoint is a folder";
  return "there is no checkpoint in " + folder.string();
}

void sweep_checkpoints(const fs::path& folder) {
  for (const auto& entry : list_folder(folder).entries)
    if (entry.extension() == unfinished && batches_of(entry.stem()) >= 0)
      remove_files(entry);
}

void remove_checkpoint(const fs::path& folder) {
  std::error_code failed;
  if (fs::is_symlink(folder, failed)) {
    fs::remove(folder);
    return;
  }
  const fs::path leaves{folder.string() + unfinished};
  remove_files(leaves);
  fs::rename(folder, leaves);
  remove_files(leaves);
}

void reach_disk(const fs::path& folder) {
  const descriptor open{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (open.is_open())
    ::fsync(open.number());
}

unfinished_folder::unfinished_folder(fs::path name)
  : name_(std::move(name)), path_(name_.string() + unfinished) {
  std::error_code failed;
  if (fs::is_symlink(path_, failed)) // leads to files of another folder
    fs::remove(path_);
  remove_files(path_); // of a killed program
  fs::create_directories(path_);
}

unfinished_folder::~unfinished_folder() {
  remove_files(path_);
}

void unfinished_folder::finish() {
  if (const auto error = taken_name_error(name_); !error.empty())
    throw std::runtime_error(error);
  if (!has_manifest(name_)) // the name is free
    return fs::rename(path_, name_);
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, name_.c_str(), RENAME_EXCHANGE)
      != 0)
    throw fs::filesystem_error("cannot replace", name_,
                               std::error_code(errno, std::generic_category()));
}

} // namespace troupe
