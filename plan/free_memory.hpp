// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

// The memory of a machine as a value, and the measurement of this machine's memory.

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

/// A GPU of a machine.
struct gpu_memory {
  std::int64_t free_bytes;
  std::string kind; ///< GPUs of one kind compute the same bits.
};

/// The memory of a machine, which need not be this machine.
struct machine_memory {
  free_memory host;                    ///< For tensors of ranks on the CPU.
  std::map<int, gpu_memory> gpus = {}; ///< By the GPU's number on the machine.
};

/// Measures the memory that this process and the GPUs with these numbers have now.
/// \throws std::runtime_error if a GPU does not exist or does not answer
machine_memory memory_of_this_machine(const std::set<int>& gpus);

} // namespace troupe
