// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/meeting_messages.hpp"
#include "plan/run_plan.hpp"

#include <optional>
#include <string>
#include <vector>

// Groups of ranks whose GPUs exchange arrays directly (NCCL), as a pure function of the
// plan.

namespace troupe {

/// A group of ranks that exchange whole arrays in successive meetings of one kind.
/// Members are the tensor shards of a stage, or the data replicas of a stage that sum
/// or gather the same buckets. A peer channel between two neighbouring stages is a
/// group as well: the first member sends tensors to the second.
struct exchanging_group {
  /// Kind of the group's meetings; absent if the group is a peer channel.
  std::optional<meeting_kind> kind;
  /// Distance between neighbouring members, in data replicas; 1 for tensor shards and
  /// channels.
  int stride;
  std::vector<position> members;

  bool operator==(const exchanging_group&) const = default;

  bool is_channel() const { return !kind; }
};

/// All groups of a plan with two members or more, whatever the members' processors are.
/// The order depends only on the plan, and numbers the groups from 0.
std::vector<exchanging_group> exchanging_groups(const run_plan& plan);

/// Indexes (into `exchanging_groups`) of groups whose members all have GPUs, each a
/// different one. Empty without a training, and in virtual time, where the machine
/// model gives the durations of messages.
/// \param gpus GPU name of each rank, distinct between GPUs; an empty name stands for
/// the CPU
std::vector<int> groups_on_gpus(const run_plan& plan,
                                const std::vector<std::string>& gpus);

/// True if the stage at `lower` and the next stage can have peer channels, provided
/// that both are in this process. The conditions are a training in real time without
/// relays, different GPUs for both ranks, and a usable NCCL. If a channel exists, both
/// stages have separate pools for the tensors between them.
/// \pre `lower` is not the last stage
bool may_have_channel(const run_plan& plan, position lower);

/// GPU names of all ranks, by rank; empty for a rank on the CPU.
/// \pre all ranks are in this process
/// \throws std::runtime_error if a GPU cannot be queried
std::vector<std::string> local_gpus(const run_plan& plan);

} // namespace troupe
