// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/position.hpp"

#include <cstdint>

namespace troupe {

/// What those who compute do. Each has a core that knows its work, and one conversation
/// with the scheduler of its device (turns.hpp).
enum class role : std::uint8_t { stage, optimizer_shard, expert, parameter_server };

/// One who computes: a stage; its optimizer shard, of which all directions of a
/// schedule have one; an expert; a parameter server with a share of a stage's
/// parameters.
struct performer {
  role what;
  position where; ///< The stage, the optimizer's or the server's, or the expert's host.
  int expert = -1; ///< In the network's list; -1: not an expert.

  bool operator==(const performer&) const = default;
};

} // namespace troupe
