// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace troupe {

// Folders of checkpoints on disk. A folder of checkpoints has one folder for each
// checkpoint, named after the batches that the training has completed: batch-8. During
// writing and removal that folder is called batch-8.unfinished. All other folders stay
// unchanged, as does a folder batch-N that has files but no manifest.

inline constexpr const char* manifest_name = "manifest.json";

/// Number of batches in a folder's name, such as 8 in batch-8; negative if the name is
/// not a checkpoint's, as batch-08.
int batches_of(const std::filesystem::path& folder);

/// The entries of a folder, as far as the system lists them.
struct folder_listing {
  std::vector<std::filesystem::path> entries;
  /// The reason if the folder or an entry cannot be read. No error if no folder of the
  /// name exists.
  std::error_code error;
};

/// Lists a folder. After an entry that cannot be read the list ends.
folder_listing list_folder(const std::filesystem::path& folder);

/// The checkpoints in a folder, from the most batches to the fewest: subfolders with a
/// manifest and a checkpoint's name. Empty if there is no folder.
/// \throws std::runtime_error if the folder, or an entry, cannot be read
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);

/// The same for a folder that has been listed.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder,
                                                  const folder_listing& listed);

/// All entries of a folder that have a checkpoint's name, from the most batches to the
/// fewest: checkpoints, folders without a manifest, and files.
/// \throws std::runtime_error as checkpoints_in()
std::vector<std::filesystem::path>
named_entries_in(const std::filesystem::path& folder);

/// Why an entry with a checkpoint's name is no checkpoint: one sentence. Empty if the
/// entry has a manifest file.
std::string manifest_error(const std::filesystem::path& entry);

/// Why the system does not tell whether an entry has a manifest: one sentence. Empty if
/// the system does.
std::string unknown_manifest_error(const std::filesystem::path& entry);

/// Why a new checkpoint cannot replace the entry of its name: one sentence about a
/// file, a symbolic link, or a folder that has files and no manifest. Empty if the name
/// is free, or belongs to an empty folder or to a checkpoint.
std::string taken_name_error(const std::filesystem::path& name);

/// The checkpoints that a user's path names, from the most batches to the fewest. The
/// path is a folder of checkpoints, or one checkpoint: a folder of any name that has a
/// manifest.
std::vector<std::filesystem::path> checkpoints_at(const std::filesystem::path& path);

/// True if the folder has a manifest file. The manifest is not read.
bool is_checkpoint(const std::filesystem::path& folder);

/// The error text for a folder without checkpoints; for a file, the text says to give
/// the file to --init.
std::string no_checkpoint_in(const std::filesystem::path& folder);

/// Removes unfinished checkpoints that killed programs have left in `folder`. If a
/// checkpoint's subfolder has other files too, the subfolder stays with those files.
/// Errors are ignored.
/// \pre no process writes to the folder
void sweep_checkpoints(const std::filesystem::path& folder);

/// Removes a checkpoint. The folder first gets the name of an unfinished one, so that
/// an incomplete checkpoint never has a checkpoint's name. If the path is a symbolic
/// link, only the link is removed. Files that are not a checkpoint's stay in the
/// unfinished folder.
/// \throws std::filesystem::filesystem_error if the folder cannot be renamed, or the
/// link cannot be removed
void remove_checkpoint(const std::filesystem::path& folder);

/// Waits until the entries of a folder are on the disk (fsync). Errors are ignored.
void reach_disk(const std::filesystem::path& folder);

/// The folder of a checkpoint during writing. The destructor removes the folder at
/// path(): the unfinished checkpoint, or a checkpoint that finish() has replaced.
class unfinished_folder {
public:
  /// Creates the folder, and removes files that a killed program has left there. A
  /// symbolic link of the folder's name is removed, and the link's target stays.
  /// \param name path of the finished checkpoint
  /// \throws std::filesystem::filesystem_error if the folder cannot be created
  explicit unfinished_folder(std::filesystem::path name);
  ~unfinished_folder();
  unfinished_folder(const unfinished_folder&) = delete;
  unfinished_folder& operator=(const unfinished_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Renames the folder to the final name, and replaces a checkpoint of that name.
  /// \throws std::runtime_error if the name belongs to a file, a symbolic link, or a
  /// folder with files but no manifest
  /// \throws std::filesystem::filesystem_error if the system cannot rename the folder
  void finish();

private:
  std::filesystem::path name_, path_;
};

} // namespace troupe
