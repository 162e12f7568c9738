// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// 128 random bits of a node's process: every address that leads to it finds the same.
using node_identity = std::array<std::uint64_t, 2>;

/// Drawn from the system's random device. \throws std::exception without one
node_identity new_identity();

/// The numbers of nodes, from 1, in the order in which a run asks them to play. All
/// runs ask the nodes that they share in one order, whatever they call them. A node
/// that has said yes is held, so no two runs each wait for a node of the other.
std::vector<int> order_of(const std::vector<node_identity>& nodes);

/// The numbers of two addresses that lead to one node; absent without such a pair.
std::optional<std::pair<int, int>> twins_among(const std::vector<node_identity>& nodes);

} // namespace troupe
