// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/processor.hpp"
#include "messaging/mail/nodes.hpp"
#include "plan/run_plan.hpp"

#include <tl/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

// The part of a run that a node accepts: the node's limits, and the processors, results
// and memory of the node's ranks.

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

/// The processors that a leader asks for.
struct asked_processors {
  std::vector<processor> processors; ///< Ranks take them in rotation; empty: the CPU.
  /// True: ranks get these processors. False: the GPUs of a rank's node.
  bool is_list = false;
};

/// Processors of all ranks of a run, for a node. The node's ranks get the node's GPUs
/// in rotation, or the processors that the leader lists. Ranks of other nodes get the
/// CPU. The result is empty if the leader asks for no processors. The error is one
/// sentence about a rank of the node whose GPU is not in `gpus`.
/// \param ranks the ranks of the node
/// \param rank_count number of the run's ranks
/// \param gpus numbers of the GPUs that the node offers to runs
tl::expected<std::vector<processor>, std::string>
processors_of_part(const asked_processors& asked, const std::vector<int>& ranks,
                   std::size_t rank_count, const std::vector<int>& gpus);

/// processors_of_part() with the GPUs of this machine that `limits` allow.
tl::expected<std::vector<processor>, std::string>
processors_allowed(const asked_processors& asked, const std::vector<int>& ranks,
                   std::size_t rank_count, const node_limits& limits);

/// Checks that a plan on this node can take the part that a leader requests, and sets
/// the results that the node keeps. The error is one sentence: the node map, a limit of
/// the node, missing memory, or a state that the plan cannot resume from.
/// \pre the plan has a training (`work`)
tl::expected<run_plan, std::string>
accept_part(run_plan plan, const mail::prepare& facts, const node_limits& limits);

} // namespace troupe
