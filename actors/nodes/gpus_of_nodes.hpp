// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/gpu_groups.hpp"
#include "messaging/mail/nodes.hpp"

#include <string>
#include <vector>

namespace troupe {

// Direct exchange of arrays between GPUs in a run over nodes: the facts that a node
// reports, and the leader's choice from all nodes' facts.

/// The identity of a plan's data for comparison; empty if the data has none.
std::vector<mail::deciding_fact> facts_of_data(const run_plan& plan);

/// The facts that a node reports: processors of its ranks, and identity of its data.
mail::prepared facts_of_part(const run_plan& plan, const std::vector<int>& ranks);

/// Returns why a node cannot take part in the groups that the leader has chosen; empty
/// if there is no obstacle.
std::string group_error(const run_plan& plan, const std::vector<int>& ranks,
                        const std::vector<int>& groups);

/// Makes the ids of groups whose first member is on this node, in the order of
/// `groups`.
/// \pre group_error() is empty
/// \throws std::runtime_error if an id cannot be made
std::vector<group_id> new_local_ids(const run_plan& plan, const std::vector<int>& ranks,
                                    const std::vector<int>& groups);

/// The leader's knowledge of a node; lists of nodes begin with node 1.
struct node_facts {
  std::string name; ///< "a:4242"
  mail::prepared reported;
};

/// Returns why the GPUs of several kinds cannot take part in one run; empty if there is
/// one kind. Other kinds compute other bits, which no check at run time would notice.
std::string kind_error(const std::vector<node_facts>& nodes);

/// The groups of GPUs that exchange arrays directly.
struct chosen_groups {
  std::vector<int> groups; ///< Indexes among exchanging_groups.
  std::string exclusion; ///< Why other candidate groups do not exchange directly; empty
                         ///< if there are none.
};

/// Chooses the groups.
/// \param node_map the node of each rank, from 1
/// \param encrypted true if nodes reach each other by TLS, which NCCL does not support
chosen_groups choose_groups(const run_plan& plan, const std::vector<int>& node_map,
                            const std::vector<node_facts>& nodes, bool encrypted);

} // namespace troupe
