// SPDX-License-Identifier: BSD-3-Clause
#include "plan/gpu_groups.hpp"

#include "kernels/join_group.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace troupe {

namespace {

struct finder {
  const run_plan& plan;
  std::vector<exchanging_group> groups = {};

  void add(std::optional<meeting_kind> kind, int stride,
           std::vector<position> members) {
    if (members.size() > 1)
      groups.push_back({kind, stride, std::move(members)});
  }

  void add_shards(position stage) {
    std::vector<position> members;
    for (int t = 0; t < plan.mesh[axis::tensor]; ++t)
      members.push_back({stage.data, stage.direction, stage.stage, t});
    add(meeting_kind::shards, 1, std::move(members));
  }

  void add_replicas(meeting_kind kind, position stage, int stride) {
    for (int first = 0; first < stride; ++first) {
      std::vector<position> members;
      for (int d = first; d < plan.mesh[axis::data]; d += stride)
        members.push_back({d, stage.direction, stage.stage, stage.tensor});
      add(kind, stride, std::move(members));
    }
  }

  /// Buckets of experts that replicas spread have separate groups, one for each stride.
  void add_buckets(meeting_kind kind, position stage) {
    std::set<int> strides;
    for (const auto& group : groups_of(plan, stage))
      strides.insert(group.stride);
    for (const int stride : strides)
      add_replicas(kind, stage, stride);
  }

  /// Adds channels in both directions, unless relays of the user are between the
  /// stages.
  void add_channels(position lower) {
    auto upper = lower;
    ++upper.stage;
    if (upper.stage == plan.dims.stages || plan.has_relays)
      return;
    for (int d = 0; d < plan.mesh[axis::data]; ++d) {
      lower.data = upper.data = d;
      add({}, 1, {lower, upper});
      add({}, 1, {upper, lower});
    }
  }

  void add_stage(position stage) {
    if (stage.tensor == 0)
      for (int d = 0; d < plan.mesh[axis::data]; ++d)
        add_shards({d, stage.direction, stage.stage, 0});
    // GPUs exchange arrays as they are; encoded gradients go through messages.
    const bool encodes = plan.exchange && plan.exchange->compression != &fp32_codec();
    if (shares_out(plan, shared_out::gradients) && !encodes)
      add_replicas(meeting_kind::layers, stage, 1);
    if (stage.direction > 0) // one optimizer shard for all directions
      return;
    if (sums_at_update(plan) && !encodes)
      add_buckets(meeting_kind::sums, stage);
    if (gathers_at_update(plan))
      add_buckets(meeting_kind::gathers, stage);
  }
};

/// True if each member is on a GPU, and no two members share one.
bool are_apart(const exchanging_group& group, const run_plan& plan,
               const std::vector<std::string>& gpus) {
  std::set<std::string> seen;
  return std::ranges::all_of(group.members, [&](const position& where) {
    const auto& gpu = gpus[static_cast<std::size_t>(plan.rank_of(where))];
    return !gpu.empty() && seen.insert(gpu).second;
  });
}

} // namespace

std::vector<exchanging_group> exchanging_groups(const run_plan& plan) {
  finder search{plan};
  const auto for_each_stage = [&](const auto& each) {
    for (int direction = 0; direction < plan.directions(); ++direction)
      for (int stage = 0; stage < plan.dims.stages; ++stage)
        for (int tensor = 0; tensor < plan.mesh[axis::tensor]; ++tensor)
          each({0, direction, stage, tensor});
  };
  for_each_stage([&](position stage) { search.add_stage(stage); });
  for_each_stage([&](position stage) { search.add_channels(stage); });
  return std::move(search.groups);
}

std::vector<int> groups_on_gpus(const run_plan& plan,
                                const std::vector<std::string>& gpus) {
  std::vector<int> result;
  if (!plan.work || plan.machine.clock != clock_kind::real)
    return result;
  for (int number = 0; const auto& group : exchanging_groups(plan)) {
    if (are_apart(group, plan, gpus))
      result.push_back(number);
    ++number;
  }
  return result;
}

bool may_have_channel(const run_plan& plan, position lower) {
  auto upper = lower;
  ++upper.stage;
  const auto a = plan.machine.processor_of(plan.rank_of(lower)),
             b = plan.machine.processor_of(plan.rank_of(upper));
  return plan.work && plan.machine.clock == clock_kind::real && !plan.has_relays
         && a.is_gpu() && b.is_gpu() && a.gpu != b.gpu
         && absence_of_communicators().empty();
}

std::vector<std::string> local_gpus(const run_plan& plan) {
  std::vector<std::string> result;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    result.push_back(facts_of(plan.machine.processor_of(rank)).name);
  return result;
}

} // namespace troupe
