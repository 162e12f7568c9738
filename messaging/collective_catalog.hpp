// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective_order.hpp"

#include <span>
#include <string>
#include <string_view>

namespace troupe {

collective_order direct_send();
collective_order tree_scatter();
collective_order tree_gather();
collective_order tree_broadcast();
collective_order tree_reduce();
collective_order naive_all_reduce();
collective_order tree_all_reduce();
collective_order ring_all_reduce();
collective_order halving_all_reduce();
collective_order doubling_all_reduce();
collective_order naive_all_gather();
collective_order ring_all_gather();
collective_order halving_all_gather();
collective_order naive_reduce_scatter();
collective_order ring_reduce_scatter();
collective_order halving_reduce_scatter();
collective_order pairwise_all_to_all();

/// Every order there is, those of an operation side by side.
std::span<const collective_order> collective_catalog();

/// "all_reduce" and so on.
std::string_view name_of(collective_operation what);

/// The order of an operation that has this name; null if there is none.
const collective_order* find_collective(collective_operation what,
                                        std::string_view name);

/// The operations, and the names of orders, each once: "send, scatter, ...".
std::string operation_names();
std::string algorithm_names();

} // namespace troupe
