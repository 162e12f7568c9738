// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

// A folder of checkpoints has one folder for each, called after its batches: batch-8.
// While it is written, or removed, it is called batch-8.unfinished. Nothing else in
// there is ours: what has another name, or no manifest, stays as it is.

inline constexpr const char* manifest_name = "manifest.json";

/// The batches that a folder is called after; -1: it is none of a checkpoint.
int batches_of(const std::filesystem::path& folder);

/// The checkpoints of a folder, the newest first: those that have a manifest.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);

/// The checkpoints that a user's path names, the newest first: those of a folder, or
/// the one that the path is, as FOLDER/batch-8.
std::vector<std::filesystem::path> checkpoints_at(const std::filesystem::path& place);

/// Whether a folder is one checkpoint itself.
bool is_checkpoint(const std::filesystem::path& folder);

/// The sentence about a folder that has no checkpoints.
std::string no_checkpoint_in(const std::filesystem::path& folder);

/// Removes what a killed program has left unfinished. \pre nobody writes there
void sweep_checkpoints(const std::filesystem::path& folder);

/// Removes a checkpoint: from now on there is none of that name. Of a link only that.
void remove_checkpoint(const std::filesystem::path& one);

/// Waits until the names in a folder are on the disk.
void reach_disk(const std::filesystem::path& folder);

/// A folder for a checkpoint that is being written; gone in the end, unless it was
/// finished.
class unfinished_folder {
public:
  /// \param name of the checkpoint
  explicit unfinished_folder(std::filesystem::path name);
  ~unfinished_folder();
  unfinished_folder(const unfinished_folder&) = delete;
  unfinished_folder& operator=(const unfinished_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Takes its name, also from a checkpoint that has it.
  /// \throws std::runtime_error if something else has it
  void finish();

private:
  std::filesystem::path name_, path_;
};

} // namespace troupe
