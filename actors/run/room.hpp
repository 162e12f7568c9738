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

/// What the caller of a training takes besides, while it is performed.
struct bytes_beside {
  std::int64_t of_machine = 0;
  std::map<int, std::int64_t> of_gpus = {}; ///< By their numbers.
};

using counts_beside = std::function<bytes_beside(const run_plan&)>;

// Why a run does not fit the memory there is, in one sentence; empty if it does.

/// What the program itself takes: measured, rounded up.
inline constexpr std::int64_t bytes_of_program = 24 << 20;

/// Of so many bytes on each rank. \param beside others
std::string no_room_for(const std::vector<std::int64_t>& bytes, std::int64_t beside);

/// Of so many bytes on each rank, in this machine's memory and in that of GPUs.
/// \param of_each what computes for it \param beside others
std::string no_room_on(const std::vector<processor>& of_each,
                       const std::vector<std::int64_t>& bytes,
                       const bytes_beside& beside);

/// Of what those ranks of a run take that this machine has. \param bytes of each of
/// them \param beside others
std::string no_room_for_ranks(const run_plan& plan, const std::vector<int>& ranks,
                              const std::vector<std::int64_t>& bytes,
                              const bytes_beside& beside = {});

/// Of what actors take, and a check of their programs.
std::string no_room_for_actors(const run_plan& plan);

/// Of sizes whose exact bytes might not fit a number: by what the parameters and one
/// microbatch take at least. \pre work
std::string far_too_large(const run_plan& plan);

/// Of all that a training takes. \param beside,here as refusal's
/// \pre work, and its programs are right
std::string no_room_for_training(const run_plan& plan, const counts_beside& beside,
                                 const std::optional<std::vector<int>>& here);

} // namespace troupe
