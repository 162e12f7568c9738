// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective_order.hpp"

#include <span>
#include <string>
#include <string_view>

// All collective algorithms by name, and the functions that find one. The sources are
// in orders/.

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

/// Every order that exists; orders of the same operation are neighbours. Valid until
/// the end of the program.
std::span<const collective_order> collective_catalog();

/// The operation as text: "all_reduce" and so on.
/// \throws std::logic_error for a value outside of the enumeration
std::string_view name_of(collective_operation operation);

/// Returns the order of collective_catalog() with this name for an operation; null if
/// there is none.
const collective_order* find_collective(collective_operation operation,
                                        std::string_view name);

/// Returns the names of all operations, each once: "send, scatter, ...".
std::string operation_names();
/// Returns the names of all orders, each once: "direct, tree, ...".
std::string algorithm_names();

} // namespace troupe
