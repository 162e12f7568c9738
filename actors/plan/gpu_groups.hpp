// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "messaging/mail/meeting_messages.hpp"

#include <optional>
#include <string>
#include <vector>

// Groups of ranks whose GPUs exchange arrays directly (NCCL), as a pure function of the
// plan.

namespace troupe {

/// A group of ranks that exchange whole arrays in one meeting after another: the tensor
/// shards of a stage, or data replicas. A peer channel between two neighbouring stages
/// is a group as well: the first of two members sends tensors to the second.
struct exchanging_group {
  /// The meeting that the group serves; absent: a peer channel.
  std::optional<meeting_kind> kind;
  int stride; ///< Data replicas from member to member; 1 for tensor shards and
              ///< channels.
  std::vector<position> members;

  bool operator==(const exchanging_group&) const = default;

  bool is_channel() const { return !kind; }
};

/// All groups of a plan, in one fixed order; groups are numbered by this order.
std::vector<exchanging_group> exchanging_groups(const run_plan& plan);

/// Indexes (into `exchanging_groups`) of groups whose members all have GPUs, each a
/// different one. Empty in virtual time, where messages are timed by the machine model.
/// \param gpus GPU name of each rank, distinct between GPUs; an empty name stands for
/// the CPU
std::vector<int> groups_on_gpus(const run_plan& plan,
                                const std::vector<std::string>& gpus);

/// True if stage `lower` and the next stage can have peer channels, provided that both
/// are in this process. Each of the two stages then has a pool for the tensors between
/// them.
bool may_have_channel(const run_plan& plan, position lower);

/// GPU names of all ranks, by rank. All ranks must be in this process.
std::vector<std::string> local_gpus(const run_plan& plan);

} // namespace troupe
