// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

// Identities of nodes, and the order in which a run asks nodes to take part.

namespace troupe {

/// 128 random bits of a node's process: the same for every address that leads to that
/// process.
using node_identity = std::array<std::uint64_t, 2>;

/// Draws an identity from the system's random device. \throws std::exception without
/// such a device
node_identity new_identity();

/// Returns the numbers of nodes, from 1, in the order in which a run asks nodes to take
/// part. All runs ask the nodes that they share in the same order, whatever addresses
/// these runs use. A node that has accepted is held, so two runs never each wait for a
/// node of the other.
std::vector<int> order_of(const std::vector<node_identity>& nodes);

/// Returns the numbers of two addresses that lead to one node; absent without such a
/// pair.
std::optional<std::pair<int, int>> twins_among(const std::vector<node_identity>& nodes);

} // namespace troupe
