// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Bytes that the caller of a training allocates in addition, while the training runs.
struct caller_bytes {
  std::int64_t of_machine = 0;
  std::map<int, std::int64_t> of_gpus = {}; ///< Bytes by the GPU's number.
};

using caller_bytes_counter = std::function<caller_bytes(const run_plan&)>;

// Each check returns one sentence if a run does not fit free memory; empty if the run
// fits.

/// Bytes of the program itself: measured, rounded up.
inline constexpr std::int64_t bytes_of_program = 24 << 20;

/// Checks that this process can hold `bytes[r]` for each rank r.
/// \param other_bytes bytes that the process needs in addition
std::string check_memory(const std::vector<std::int64_t>& bytes,
                         std::int64_t other_bytes);

/// Checks that the memory of this machine and of GPUs can hold `bytes[r]` for each rank
/// r.
/// \param of_each the processor of each rank
/// \param other_bytes bytes that the process needs in addition
std::string check_processor_memory(const std::vector<processor>& of_each,
                                   const std::vector<std::int64_t>& bytes,
                                   const caller_bytes& other_bytes);

/// Checks the memory for those ranks of a run that are on this machine.
/// \param ranks the ranks here
/// \param bytes the bytes that each of `ranks` needs, in the order of `ranks`
/// \param other_bytes bytes that the process needs in addition
std::string check_memory_of_ranks(const run_plan& plan, const std::vector<int>& ranks,
                                  const std::vector<std::int64_t>& bytes,
                                  const caller_bytes& other_bytes = {});

/// Checks the memory of a run's actors, and of a check of the ranks' programs.
std::string check_memory_of_actors(const run_plan& plan);

/// Checks that a run needs less than 1e15 bytes, as an exact number of bytes might
/// overflow. Counts only the parameters and one microbatch.
/// \pre the plan has a training (`work`)
std::string check_size(const run_plan& plan);

/// Checks all memory that a training takes.
/// \param count_caller_bytes,local_ranks as validation_error() takes
/// \pre the plan has a training (`work`), and valid programs
std::string
check_memory_of_training(const run_plan& plan,
                         const caller_bytes_counter& count_caller_bytes,
                         const std::optional<std::vector<int>>& local_ranks);

} // namespace troupe
