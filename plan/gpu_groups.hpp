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
/// Members are the tensor shards or the data replicas of a stage. A peer channel
/// between two neighbouring stages is a group as well: the first member sends tensors
/// to the second.
struct exchanging_group {
  /// The meeting that the group serves; absent if the group is a peer channel.
  std::optional<meeting_kind> kind;
  /// Distance between neighbouring members, in data replicas; 1 for tensor shards and
  /// channels.
  int stride;
  std::vector<position> members;

  bool operator==(const exchanging_group&) const = default;

  bool is_channel() const { return !kind; }
};

/// All groups of a plan with two members or more, in one fixed order, on any
/// processors. Groups are numbered by this order from 0.
std::vector<exchanging_group> exchanging_groups(const run_plan& plan);

/// Indexes (into `exchanging_groups`) of groups whose members all have GPUs, each a
/// different one. Empty without a training, and in virtual time, where the machine
/// model gives the durations of messages.
/// \param gpus GPU name of each rank, distinct between GPUs; an empty name stands for
/// the CPU
std::vector<int> groups_on_gpus(const run_plan& plan,
                                const std::vector<std::string>& gpus);

/// True if the stage at `lower` and the next stage can have peer channels, provided
/// that both are in this process. The test: a training in real time without relays,
/// different GPUs, and a usable NCCL. Each of the two stages then has a pool for the
/// tensors between them.
/// \pre `lower` is not the last stage
bool may_have_channel(const run_plan& plan, position lower);

/// GPU names of all ranks, by rank; empty for a rank on the CPU. All ranks must be in
/// this process.
std::vector<std::string> local_gpus(const run_plan& plan);

} // namespace troupe
