// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe {

/// Memory that may still be taken, and who would refuse more: "the machine".
struct free_memory {
  std::int64_t bytes;
  std::string where;
};

/// What this process could take now: the least that the machine, the control groups
/// that it is in and its own limits leave it.
free_memory memory_of_process();

/// The same without its own limits, as the kernel's files say that lie below `root`:
/// /proc/meminfo, and of both versions of control groups those of the process and all
/// above them. Pages of files that a group holds count as free: they are given up.
free_memory memory_by_files(const std::filesystem::path& root);

} // namespace troupe
