// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/gpu_groups.hpp"
#include "messaging/mail/nodes.hpp"

#include <string>
#include <vector>

namespace troupe {

// Whose GPUs exchange arrays in a run that nodes play: what a node says of its own, and
// what the lead makes of that.

/// The data of a plan, if its identity is known, for comparison.
std::vector<mail::deciding_fact> facts_of_data(const run_plan& plan);

/// What a node has to say of what computes for its ranks, and of what it reads.
mail::prepared facts_of_part(const run_plan& plan, const std::vector<int>& ranks);

/// Why a node cannot be in the groups that it is told of; empty if it can.
std::string fault_of_groups(const run_plan& plan, const std::vector<int>& ranks,
                            const std::vector<int>& groups);

/// Ids of those groups whose first member a node has, in order.
/// \pre fault_of_groups() is empty \throws std::runtime_error
std::vector<group_id> ids_of_own(const run_plan& plan, const std::vector<int>& ranks,
                                 const std::vector<int>& groups);

/// What the lead knows of all nodes, by number from 1.
struct node_facts {
  std::string name; ///< "a:4242"
  mail::prepared said;
};

/// Why GPUs of several kinds cannot be in one run; empty if there is one kind: others
/// make other bits, which nobody would be told of.
std::string refusal_of_kinds(const std::vector<node_facts>& nodes);

/// Which groups of GPUs exchange arrays themselves.
struct chosen_groups {
  std::vector<int> groups; ///< By their places among all.
  std::string absence;     ///< Why others do not that could; empty: there are none.
};

/// \param encrypted whether nodes reach each other by TLS, which GPUs do not speak
chosen_groups choose_groups(const run_plan& plan, const std::vector<int>& places,
                            const std::vector<node_facts>& nodes, bool encrypted);

} // namespace troupe
