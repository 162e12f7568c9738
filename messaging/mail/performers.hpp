// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/position.hpp"

#include <cstdint>

// The performers of a run: actors that compute on a device, by role and position.

namespace troupe {

/// The role of an actor that computes. Each role has a core: a class without actors
/// that does the work. All roles have one protocol with the scheduler of the device
/// (turns.hpp).
enum class role : std::uint8_t { stage, optimizer_shard, expert, parameter_server };

/// An actor that computes: a stage, an optimizer shard, an expert or a parameter
/// server. All directions of a schedule share a stage's optimizer shard. A parameter
/// server has a share of a stage's parameters.
struct performer {
  role kind;
  /// Position of the stage or server; of an optimizer shard, the shard's stage; of an
  /// expert, the stage on the expert's rank.
  position where;
  /// Index in the network's list of experts; -1 if the performer is no expert.
  int expert = -1;

  bool operator==(const performer&) const = default;
};

} // namespace troupe
