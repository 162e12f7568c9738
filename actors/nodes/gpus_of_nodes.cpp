// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/gpus_of_nodes.hpp"

#include "actors/nodes/common_facts.hpp"
#include "actors/nodes/cpu_arithmetic.hpp"
#include "actors/nodes/node_maps.hpp"
#include "actors/nodes/this_machine.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace troupe {

std::vector<mail::deciding_fact> facts_of_data(const run_plan& plan) {
  const auto data = plan.work->data->identity();
  if (!data)
    return {};
  return {{name_of_data, to_string(*data)}};
}

mail::prepared facts_of_part(const run_plan& plan, const std::vector<int>& ranks) {
  mail::prepared result{.machine = this_machine(), .facts = facts_of_data(plan)};
  result.facts.push_back(
    {"checksum of a small network's initial weights", sum_of_first_values()});
  bool by_cpu = false;
  for (const int rank : ranks) {
    const auto where = plan.machine.processor_of(rank);
    auto facts = facts_of(where);
    result.gpus.push_back(std::move(facts.name));
    result.kinds.push_back(std::move(facts.kind));
    by_cpu = by_cpu || !where.is_gpu();
    if (where.is_gpu())
      result.ungrouped = absence_of_communicators();
    if (where.is_gpu() && !result.kinds.back().empty())
      result.facts.push_back({"kind of GPU", result.kinds.back()});
  }
  if (by_cpu)
    result.facts.push_back(
      {"checksum of a small training on the CPU", sum_of_small_training()});
  return result;
}

std::string group_error(const run_plan& plan, const std::vector<int>& ranks,
                        const std::vector<int>& groups) {
  const auto candidates = exchanging_groups(plan);
  std::set<int> seen;
  bool has_member = false; // of a group, among `ranks`
  for (const int number : groups) {
    if (number < 0 || number >= std::ssize(candidates) || !seen.insert(number).second)
      return "the leader's request names a group of GPUs twice, or a group that does "
             "not exist";
    std::set<int> gpus;
    for (const auto& where : candidates[static_cast<std::size_t>(number)].members)
      if (const int rank = plan.rank_of(where);
          std::ranges::find(ranks, rank) != ranks.end()) {
        has_member = true;
        if (const auto rank_processor = plan.machine.processor_of(rank);
            !rank_processor.is_gpu() || !gpus.insert(rank_processor.gpu).second)
          return "the leader's request names a group of GPUs, but two of the group's "
                 "ranks share a GPU, or a rank has no GPU";
      }
  }
  return has_member ? absence_of_communicators() : "";
}

std::vector<group_id> new_local_ids(const run_plan& plan, const std::vector<int>& ranks,
                                    const std::vector<int>& groups) {
  const auto candidates = exchanging_groups(plan);
  std::vector<group_id> result;
  for (const int number : groups) {
    const auto& first = candidates[static_cast<std::size_t>(number)].members.front();
    if (std::ranges::find(ranks, plan.rank_of(first)) != ranks.end())
      result.push_back(new_group());
  }
  return result;
}

std::string kind_error(const std::vector<node_facts>& nodes) {
  const node_facts* first = nullptr;
  std::string kind;
  for (const auto& node : nodes)
    for (const auto& other_kind : node.reported.kinds) {
      if (other_kind.empty() || other_kind == kind)
        continue;
      if (first != nullptr)
        return "GPUs of a run must be of the same kind, and node " + first->name
               + " has " + kind
               + (first == &node ? " and " : ", node " + node.name + " has ")
               + other_kind;
      kind = other_kind;
      first = &node;
    }
  return {};
}

chosen_groups choose_groups(const run_plan& plan, const std::vector<int>& node_map,
                            const std::vector<node_facts>& nodes, bool encrypted) {
  std::vector<std::string> gpus(node_map.size());
  std::set<int> ungrouped; // nodes
  chosen_groups result;
  for (int number = 1; number <= std::ssize(nodes); ++number) {
    const auto& [name, reported] = nodes[static_cast<std::size_t>(number) - 1];
    for (std::size_t i = 0; const int rank : ranks_at(node_map, number))
      if (i < reported.gpus.size())
        gpus[static_cast<std::size_t>(rank)] = reported.gpus[i++];
    if (!reported.ungrouped.empty())
      ungrouped.insert(number);
  }
  const auto candidates = exchanging_groups(plan);
  for (const int group : groups_on_gpus(plan, gpus)) {
    std::set<int> hosts;
    for (const auto& where : candidates[static_cast<std::size_t>(group)].members)
      hosts.insert(node_map[static_cast<std::size_t>(plan.rank_of(where))]);
    const auto without = std::ranges::find_if(
      hosts, [&](int number) { return ungrouped.contains(number); });
    if (without != hosts.end()) {
      const auto& node = nodes[static_cast<std::size_t>(*without) - 1];
      result.exclusion = "node " + node.name + ": " + node.reported.ungrouped;
    } else if (encrypted && hosts.size() > 1) {
      result.exclusion = "nodes reach each other by TLS, and NCCL does not encrypt";
    } else {
      result.groups.push_back(group);
    }
  }
  return result;
}

} // namespace troupe
