// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/run_plan.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Bytes that the caller of a training allocates in addition, while the training runs
/// or after its end.
struct caller_bytes {
  std::int64_t of_machine = 0;              ///< Bytes of the machine's memory.
  std::map<int, std::int64_t> of_gpus = {}; ///< Bytes by the GPU's number.
};

/// Returns the caller's bytes for a plan that has a training (`work`).
using caller_bytes_counter = std::function<caller_bytes(const run_plan&)>;

// Each check returns one sentence if a run needs too much memory; empty if the run
// fits. All checks except check_size() measure the free memory during the call. No
// check reserves memory.

/// Bytes of the program itself: measured, rounded up.
inline constexpr std::int64_t bytes_of_program = 24 << 20;

/// Checks that this process can allocate the sum of `bytes` and `other_bytes`
/// (memory_of_process()).
/// \param bytes bytes of each rank
/// \param other_bytes bytes that the process needs in addition
std::string check_memory(const std::vector<std::int64_t>& bytes,
                         std::int64_t other_bytes);

/// Checks that GPUs can hold `bytes[r]` for each rank r on a GPU, and that this process
/// can allocate the bytes of all other ranks. On a GPU, the check adds 32 MiB of
/// workspace for each rank, and 32 MiB for the caller if `other_bytes` names the GPU.
/// \param of_each the processor of each rank, in the order of `bytes`
/// \param other_bytes bytes that the process needs in addition
std::string check_processor_memory(const std::vector<processor>& of_each,
                                   const std::vector<std::int64_t>& bytes,
                                   const caller_bytes& other_bytes);

/// Checks the memory for those ranks of a run that are on this machine, with
/// check_processor_memory(). For each rank on a GPU, the check adds the workspace of
/// cuDNN's attention backward, if the plan may run that backward.
/// \param ranks the ranks here
/// \param bytes the bytes that each of `ranks` needs, in the order of `ranks`
/// \param other_bytes bytes that the process needs in addition
/// \pre the plan has a training (`work`), or no rank is on a GPU
std::string check_memory_of_ranks(const run_plan& plan, const std::vector<int>& ranks,
                                  const std::vector<std::int64_t>& bytes,
                                  const caller_bytes& other_bytes = {});

/// An upper bound of the bytes that the actors of all ranks take without tensors, with
/// the check of the ranks' programs that precedes the run. Counts the stages of all
/// directions, and in a training a bucket for each layer and hosted expert.
std::int64_t bytes_of_actors(const run_plan& plan);

/// Checks that this process can hold the actors of all ranks, wherever the ranks are,
/// without tensors: bytes_of_actors().
std::string check_memory_of_actors(const run_plan& plan);

/// Checks that a run needs less than 1e15 bytes, as an exact number of bytes might
/// overflow. Does not look at free memory. Counts only the parameters, and the inputs
/// and outputs of all layers for the largest microbatch.
/// \pre the plan has a training (`work`)
std::string check_size(const run_plan& plan);

/// Checks the memory that a training takes on this machine and the machine's GPUs.
/// Counts tensors of the ranks here, the program, copies of the parameters, and the
/// caller's bytes. Actors are not included: see check_memory_of_actors(). If no rank is
/// here, copies for checkpoints and kept steps that other processes send are included.
/// \param count_caller_bytes may be empty: the caller allocates nothing in addition
/// \param local_ranks the ranks on this machine; absent: all ranks
/// \pre the plan has a training (`work`), and valid programs
std::string
check_memory_of_training(const run_plan& plan,
                         const caller_bytes_counter& count_caller_bytes,
                         const std::optional<std::vector<int>>& local_ranks);

} // namespace troupe
