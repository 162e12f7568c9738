// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/run_options.hpp"
#include "messaging/mail/nodes.hpp"
#include "plan/run_plan.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The limits of a node for each run on the node.
struct node_limits {
  int threads = 1;    ///< CPU threads of a run.
  int most_ranks = 0; ///< Most ranks of a run on the node; 0: no limit.
  /// Most bytes that the node's ranks of a run need; 0: no limit. The free memory of
  /// the machine is always a limit.
  std::int64_t most_memory = 0;
  std::optional<std::vector<int>> gpus; ///< Numbers of the allowed GPUs; absent: all.
  std::filesystem::path folder;         ///< Folder from which runs may read files.
};

/// Processors of all ranks of a run, by the leader's --device, for a node. The node's
/// ranks get the node's GPUs in rotation, or the processors that the leader lists.
/// Ranks of other nodes get the CPU. The result is empty if `leader_options.processors`
/// is empty: all ranks of the run are on CPUs. The error is one sentence about a rank
/// of the node whose GPU is not in `gpus`.
/// \param ranks the ranks of the node
/// \param rank_count number of the run's ranks
/// \param gpus numbers of the GPUs that the node offers to runs
tl::expected<std::vector<processor>, std::string>
processors_of_part(const run_options& leader_options, const std::vector<int>& ranks,
                   std::size_t rank_count, const std::vector<int>& gpus);

/// The plan of a run that another process leads, from the facts in the leader's
/// message. The error is one sentence: a limit of the node, missing memory, data or
/// GPUs, other bits of bf16 products, or a mistake in the message.
tl::expected<run_plan, std::string> plan_of_part(const mail::prepare& facts,
                                                 const node_limits& limits);

} // namespace troupe
