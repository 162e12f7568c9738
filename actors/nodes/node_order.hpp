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

/// Draws an identity from the system's random device.
/// \throws std::exception without such a device
node_identity new_identity();

/// Returns the numbers of nodes, from 1, in the order in which a run asks nodes to take
/// part. Runs that share nodes ask the shared nodes in the same order, whatever
/// addresses the runs use. A run holds each node that has accepted, so two runs never
/// wait for each other's nodes.
/// \param nodes identities, first of node 1
std::vector<int> order_of(const std::vector<node_identity>& nodes);

/// Returns the numbers, from 1, of two addresses that lead to one node, the smaller
/// first; absent if all addresses lead to different nodes.
std::optional<std::pair<int, int>> twins_among(const std::vector<node_identity>& nodes);

} // namespace troupe
