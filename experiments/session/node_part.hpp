// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "experiments/options/run_options.hpp"
#include "messaging/mail/nodes.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What a node lets runs take.
struct node_limits {
  int threads = 1;
  int most_ranks = 0;                   ///< 0: any number.
  std::int64_t most_memory = 0;         ///< Bytes of tensors; 0: what the machine has.
  std::optional<std::vector<int>> gpus; ///< By their numbers; absent: all.
  std::filesystem::path folder;         ///< What runs may read files of.
};

/// What computes for a node's ranks, as the lead's --device says it: its own GPUs in
/// turns, or those that are listed. For other ranks, which are none of the node's, the
/// CPU. On error says which rank cannot be where it is to be. \param all ranks of the
/// run \param gpus that the node gives runs
tl::expected<std::vector<processor>, std::string>
processors_of_part(const run_options& of_lead, const std::vector<int>& ranks,
                   std::size_t all, const std::vector<int>& gpus);

/// The plan of a run that another process leads, from what that says. On error says
/// what the node does not allow, or what is wrong.
tl::expected<run_plan, std::string> plan_of_part(const mail::prepare& facts,
                                                 const node_limits& limits);

} // namespace troupe
