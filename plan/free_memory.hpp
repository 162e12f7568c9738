// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe {

/// Bytes of memory that may still be allocated. `where` names the owner of the limit
/// that would refuse more, for example "the machine".
struct free_memory {
  std::int64_t bytes;
  std::string where;
};

/// The memory that this process could allocate now: the smallest amount that the
/// machine, the process's control groups, and the process's own limits leave. The
/// process's own limits are RLIMIT_AS (address space) and RLIMIT_DATA (data segment).
free_memory memory_of_process();

/// The memory that the machine and the process's control groups leave, without the
/// process's own limits. The function reads the kernel's files below `root`:
/// /proc/meminfo, /proc/self/mountinfo and /proc/self/cgroup. Also read are the files
/// of the process's control group and of all groups above, of versions 1 and 2. File
/// pages that a group holds count as free: the kernel gives such pages up. Without a
/// readable /proc/meminfo, the machine's whole memory counts as free.
free_memory memory_by_files(const std::filesystem::path& root);

} // namespace troupe
