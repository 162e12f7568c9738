// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/gpu_groups.hpp"
#include "messaging/mail/nodes.hpp"

#include <string>
#include <vector>

namespace troupe {

// Direct exchange of arrays between GPUs in a run over nodes: the facts that a node
// reports, and the leader's choice from all nodes' facts.

/// The identity of a plan's data, as a fact that nodes compare; empty if the data has
/// no identity.
/// \pre plan.work
std::vector<mail::deciding_fact> facts_of_data(const run_plan& plan);

/// The facts that a node reports: the machine, the processors of its ranks, the
/// identity of its data, and checksums of its CPU arithmetic. The checksum of a
/// training is included only if a rank of the node is on the CPU. With a rank on a GPU,
/// the facts include the reason why the node's GPUs can form no groups, if any.
/// \param ranks of the node
/// \pre plan.work
mail::prepared facts_of_part(const run_plan& plan, const std::vector<int>& ranks);

/// Returns a sentence that says why a node cannot take part in the groups that the
/// leader has chosen; empty if the node can. A node without support for groups of GPUs
/// can take part only if none of `ranks` is a member of `groups`. A repeated or unknown
/// index is an error. \param ranks of the node \param groups indexes in
/// exchanging_groups()
std::string group_error(const run_plan& plan, const std::vector<int>& ranks,
                        const std::vector<int>& groups);

/// Makes the ids of groups whose first member is on this node, in the order of
/// `groups`.
/// \pre group_error() is empty
/// \throws std::runtime_error if an id cannot be made
std::vector<group_id> new_local_ids(const run_plan& plan, const std::vector<int>& ranks,
                                    const std::vector<int>& groups);

/// The facts that the leader knows of a node. A list of these facts begins with node 1.
struct node_facts {
  std::string name; ///< "a:4242"
  mail::prepared reported;
};

/// Returns a sentence that names two kinds of GPUs, and the nodes with these GPUs;
/// empty if no two kinds are reported. Different kinds compute different bits, which no
/// check at run time would notice.
std::string kind_error(const std::vector<node_facts>& nodes);

/// The groups of GPUs that exchange arrays directly.
struct chosen_groups {
  std::vector<int> groups; ///< Indexes in exchanging_groups().
  /// The reason why a group is not chosen although each of its members has a GPU of its
  /// own. If several groups are not chosen, the last group's reason; if none, empty.
  std::string exclusion;
};

/// Chooses the groups of GPUs that exchange arrays directly.
/// \param node_map the node of each rank, from 1
/// \param encrypted true if nodes reach each other by TLS, which NCCL does not support
chosen_groups choose_groups(const run_plan& plan, const std::vector<int>& node_map,
                            const std::vector<node_facts>& nodes, bool encrypted);

} // namespace troupe
