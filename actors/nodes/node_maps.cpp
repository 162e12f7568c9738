// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/node_maps.hpp"

#include "plan/replica_rules.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace troupe {

namespace {

/// The first rank of a pipeline that hosts a stage which `rank` hosts too.
int first_with_same_stages(const run_plan& plan, int rank) {
  int result = plan.pipe_rank(rank);
  for (const auto& where : plan.hosted_by(rank))
    for (int d = 0; d < plan.directions(); ++d) {
      auto counterpart = where;
      counterpart.direction = d;
      result = std::min(result, plan.pipe_rank(plan.rank_of(counterpart)));
    }
  return result;
}

} // namespace

std::vector<int> default_node_map(const run_plan& plan, int nodes) {
  const int ranks = plan.ranks();
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  if (plan.directions() > 1)
    std::ranges::stable_sort(order, {}, [&](int rank) {
      return std::pair{plan.data_of(rank), first_with_same_stages(plan, rank)};
    });
  std::vector<int> result(order.size());
  for (int i = 0; i < ranks; ++i)
    result[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] =
      1 + static_cast<int>(std::int64_t{i} * nodes / ranks);
  return result;
}

std::vector<int> ranks_at(const std::vector<int>& node_map, int node) {
  std::vector<int> result;
  for (std::size_t rank = 0; rank < node_map.size(); ++rank)
    if (node_map[rank] == node)
      result.push_back(static_cast<int>(rank));
  return result;
}

std::string node_map_error(const run_plan& plan, const std::vector<int>& node_map,
                           int nodes) {
  if (plan.machine.clock == clock_kind::virtual_time)
    return "--nodes has no effect in virtual time, where a run has one process: leave "
           "--nodes out, or say --clock real";
  if (!updates_are_by(plan, update_by::all_replicas))
    return plan.exchange->name
           + " needs memory that all data replicas share, and nodes share no memory: "
             "give another --exchange, for example ring";
  if (static_cast<int>(node_map.size()) != plan.ranks())
    return "--place names nodes for " + std::to_string(node_map.size())
           + " ranks, and the run has " + std::to_string(plan.ranks())
           + ": give --place a node for each rank";
  for (int node = 1; node <= nodes; ++node)
    if (std::ranges::find(node_map, node) == node_map.end())
      return "node " + std::to_string(node) + " of " + std::to_string(nodes)
             + " has none of the run's " + std::to_string(plan.ranks())
             + " ranks: name fewer --nodes, or give the node a rank by --place";
  for (const int node : node_map)
    if (node < 1 || node > nodes)
      return "--place names node " + std::to_string(node)
             + ", and --nodes has nodes 1 to " + std::to_string(nodes);
  for (int s = 0; s < plan.dims.stages && plan.directions() > 1; ++s)
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      const auto node_of = [&](int direction) {
        const position where{plan.data_of(rank), direction, s, plan.shard_of(rank)};
        return node_map[static_cast<std::size_t>(plan.rank_of(where))];
      };
      for (int d = 1; d < plan.directions(); ++d)
        if (node_of(d) != node_of(0))
          return plan.sch.name + "'s directions of stage " + std::to_string(s)
                 + " share an optimizer shard: place all ranks of the stage on the "
                   "same "
                   "node by --place";
    }
  return {};
}

std::string redundancy_error(const run_plan& plan, const std::vector<int>& node_map) {
  const auto node_of = [&](int rank) {
    return node_map[static_cast<std::size_t>(rank)];
  };
  const auto ranks = plan.ranks_by_axis();
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    const auto twins = ranks.group(rank, {axis::data});
    const bool elsewhere = std::ranges::any_of(
      twins, [&](int twin) { return node_of(twin) != node_of(rank); });
    if (!elsewhere)
      return "--keep-steps needs the kept steps of another node, but node "
             + std::to_string(node_of(rank)) + " has all data replicas of rank "
             + std::to_string(rank)
             + ": name more --nodes, or place data replicas on different nodes by "
               "--place";
  }
  return {};
}

} // namespace troupe
