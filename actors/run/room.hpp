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
struct bytes_beside {
  std::int64_t of_machine = 0;
  std::map<int, std::int64_t> of_gpus = {}; ///< By the GPU's number.
};

using counts_beside = std::function<bytes_beside(const run_plan&)>;

// Each function returns one sentence if a run does not fit free memory; empty if it
// does.

/// Bytes of the program itself: measured, rounded up.
inline constexpr std::int64_t bytes_of_program = 24 << 20;

/// Checks that this process can hold `bytes[r]` for each rank r. \param other_bytes
/// that the process needs besides
std::string no_room_for(const std::vector<std::int64_t>& bytes, std::int64_t beside);

/// The same for memory of this machine and of GPUs.
/// \param of_each the processor of each rank \param other_bytes that the process needs
/// besides
std::string no_room_on(const std::vector<processor>& of_each,
                       const std::vector<std::int64_t>& bytes,
                       const bytes_beside& beside);

/// The same for the ranks of a run that are on this machine. \param bytes for each of
/// those ranks \param other_bytes that the process needs besides
std::string no_room_for_ranks(const run_plan& plan, const std::vector<int>& ranks,
                              const std::vector<std::int64_t>& bytes,
                              const bytes_beside& beside = {});

/// Checks the memory that actors take, and a check of the actors' programs.
std::string no_room_for_actors(const run_plan& plan);

/// Checks sizes whose exact number of bytes might overflow: by the least that
/// parameters and one microbatch take. \pre work
std::string far_too_large(const run_plan& plan);

/// Checks all memory that a training takes. \param count_caller_bytes,local_ranks as
/// validation_error() takes \pre work, and programs that are right
std::string no_room_for_training(const run_plan& plan, const counts_beside& beside,
                                 const std::optional<std::vector<int>>& here);

} // namespace troupe
