#pragma once

#include "actors/plan/run_plan.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

// Why a run does not fit the memory there is, in one sentence; empty if it does.

/// What the program itself takes: measured, rounded up.
inline constexpr std::int64_t bytes_of_program = 24 << 20;

/// Of so many bytes on each rank. \param beside others
std::string no_room_for(const std::vector<std::int64_t>& bytes, std::int64_t beside);

/// Of what those ranks of a run take that this machine has: in its own memory, and in
/// that of GPUs. \param bytes of each of them \param beside others, in its own
std::string no_room_for_ranks(const run_plan& plan, const std::vector<int>& ranks,
                              const std::vector<std::int64_t>& bytes,
                              std::int64_t beside);

/// Of what actors take, and a check of their programs.
std::string no_room_for_actors(const run_plan& plan);

/// Of sizes whose exact bytes might not fit a number: by what the parameters and one
/// microbatch take at least. \pre work
std::string far_too_large(const run_plan& plan);

/// Of all that a training takes. \param bytes_beside,here as refusal's
/// \pre work, and its programs are right
std::string
no_room_for_training(const run_plan& plan,
                     const std::function<std::int64_t(const run_plan&)>& bytes_beside,
                     const std::optional<std::vector<int>>& here);

} // namespace troupe
