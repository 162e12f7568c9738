// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

// Files that are written whole or not at all. An older file of the name stays until the
// new file is complete and on the disk. A symbolic link stays, and the file at the
// link's end is replaced. The new file gets the older file's permissions, and the older
// file's owner if the system allows. Several processes may write the same file at the
// same time: the file of the last to end stays.
//
// An unfinished file has no name where the file system knows O_TMPFILE and /proc is
// there, except just before the older file is replaced. A program killed before that
// moment leaves nothing behind. Elsewhere an unfinished file is called
// `.troupe-PID-NUMBER`, in the same folder, and is never read.

/// The file that a path leads to, which need not exist; absent if more than 40 links
/// follow one another, as with links that lead to themselves. Folders on the way may be
/// links, and stay in the result.
std::optional<std::filesystem::path> without_links(std::filesystem::path path);

/// Writes `pieces` one after another, then syncs the file to the disk. Returns empty on
/// success, else one sentence.
/// \param on_complete called when all is on the disk, just before the file replaces the
/// older file. An exception leaves the older file unchanged
std::string write_whole_file(const std::filesystem::path& path,
                             std::span<const std::string_view> pieces,
                             const std::function<void()>& on_complete = {});
std::string write_whole_file(const std::filesystem::path& path,
                             std::string_view content);

/// Returns one sentence if a file cannot be written. Empty if the path may be replaced
/// by a file, and an unfinished file could be created in the folder. The check changes
/// no existing file.
std::string writability_error(const std::filesystem::path& path);

} // namespace troupe
