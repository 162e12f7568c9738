// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "messaging/mail/letters.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Members of one meeting after another that move whole arrays: tensor shards of a
/// stage, or data replicas. Or an edge between two stages: the first of two members
/// gives the second tensors.
struct exchanging_group {
  std::optional<meeting_kind> about; ///< Absent: an edge.
  int stride; ///< Data replicas from member to member; 1 for tensor shards, and edges.
  std::vector<position> members;

  bool operator==(const exchanging_group&) const = default;

  bool is_edge() const { return !about; }
};

/// All that a plan has, in one order.
std::vector<exchanging_group> exchanging_groups(const run_plan& plan);

/// Those of which each member is on a GPU of its own, by their places among all. None
/// in virtual time, where messages say what takes time. \param gpus by rank: names that
/// no two have; empty for the CPU
std::vector<int> groups_on_gpus(const run_plan& plan,
                                const std::vector<std::string>& gpus);

/// Whether a stage and the next one can have edges if both are in this process: then
/// each of them has a pool for what is between them.
bool may_have_edge(const run_plan& plan, position lower);

/// The GPUs of ranks that are all in this process.
std::vector<std::string> gpus_here(const run_plan& plan);

} // namespace troupe
