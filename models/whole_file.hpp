// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

// Files that are written whole or not at all: an older file of the name stays until the
// new one is complete and on the disk. A symbolic link stays, and what it leads to is
// replaced; permissions, and the owner where the system allows, are those of the older
// file. Several may write the same file at once: the last to end has it.
//
// What is unfinished has no name where the file system knows O_TMPFILE, so that a
// killed program leaves nothing behind; elsewhere it is called `.troupe-PID-NUMBER`, in
// the same folder, and nobody reads it.

/// The file that a path leads to, which need not be there; absent if links lead to
/// themselves. Folders on the way may be links.
std::optional<std::filesystem::path> without_links(std::filesystem::path path);

/// Writes pieces one behind another. Empty on success, else one sentence.
/// \param before called when all is written and about to take its place
std::string write_whole_file(const std::filesystem::path& path,
                             std::span<const std::string_view> pieces,
                             const std::function<void()>& before = {});
std::string write_whole_file(const std::filesystem::path& path,
                             std::string_view content);

/// Why that file cannot be written, found out without a trace; empty if it can.
std::string refusal_to_write(const std::filesystem::path& path);

} // namespace troupe
