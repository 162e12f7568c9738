// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/effects.hpp"
#include "experiments/options/option_row.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {

namespace {

/// A key of --cost, a test whether its value differs from the default, and the
/// condition under which the key has an effect in a run.
struct cost_effect {
  std::string_view key;
  bool (*said)(const cost_options& cost);
  bool (*matters)(const options& o);
  std::string_view belongs; ///< The end of a sentence, for with_name().
};

template <auto Member, int Default = 0>
bool size_differs(const cost_options& cost) {
  return cost.sizes.*Member != Default;
}

bool has_tensor_shards(const options& o) {
  return o.mesh.tensor > 1;
}

bool has_spread_experts(const options& o) {
  return o.mesh.expert > 1;
}

bool has_stages(const options& o) {
  return o.mesh.stages > 1;
}

bool has_ranks(const options& o) {
  return o.mesh.ranks() > 1;
}

/// Whether data replicas or directions of a schedule exchange gradients.
bool exchanges_gradients(const options& o) {
  return o.mesh.data > 1
         || std::ranges::any_of(o.schedules.chosen, [](const chosen_schedule& chosen) {
              return chosen.sch.where.directions > 1;
            });
}

bool has_buckets(const options& o) {
  return exchanges_gradients(o) || o.mesh.recomputed_units > 0;
}

/// Whether ranks sum: gradients, outputs of tensor shards, or those of a tied matrix.
bool has_sums(const options& o) {
  return exchanges_gradients(o) || has_tensor_shards(o) || (o.trains && o.model.tied);
}

/// Whether any message has bytes. Each exchange and each sum has at least one value.
bool sends_bytes(const options& o) {
  return o.trains || o.cost.sizes.message > 0 || has_sums(o);
}

bool runs_forwards_again(const options& o) {
  return o.mesh.recomputes != recomputation::none;
}

constexpr std::string_view of_ranks =
  "has no effect on one rank: say --stages 2 or more too, or leave % out";
constexpr std::string_view of_shards =
  "has no effect with one tensor shard: say --mesh tensor=2 or more too, or leave % "
  "out";

/// Sizes of messages in a simulation.
constexpr cost_effect effects_of_sizes[] = {
  {"bytes=", size_differs<&simulated_sizes::message>, has_stages,
   "has no effect on a pipeline of one rank: say --stages 2 or more too, or leave % "
   "out"},
  {"gradient=", size_differs<&simulated_sizes::gradient>, exchanges_gradients,
   "has no effect with one data replica and one direction: say --mesh data=2 or more "
   "too, or leave % out"},
  {"buckets=", size_differs<&simulated_sizes::buckets, 1>, has_buckets,
   "has no effect with one data replica and one direction: say --mesh data=2 or "
   "--recompute blocks=1 too, or leave % out"},
  {"tensor=", size_differs<&simulated_sizes::sum>, has_tensor_shards, of_shards},
  {"sums=", size_differs<&simulated_sizes::sums, 2>, has_tensor_shards, of_shards},
  {"experts=", size_differs<&simulated_sizes::experts>, has_spread_experts,
   "has no effect without spread experts: say --mesh data=2,expert=2, for example, or "
   "leave % out"},
};

constexpr cost_effect effects_of_times[] = {
  {"R=",
   [](const cost_options& cost) {
     return !cost.actions.by_op[static_cast<std::size_t>(op::recompute)].empty();
   },
   runs_forwards_again,
   "has no effect without recomputation: say --recompute stage too, or leave % out"},
  {"latency=", [](const cost_options& cost) { return cost.link.latency != 0; },
   has_ranks, of_ranks},
  {"bandwidth=",
   [](const cost_options& cost) { return cost.link.bytes_per_second != 0; }, has_ranks,
   of_ranks},
  {"bandwidth=",
   [](const cost_options& cost) { return cost.link.bytes_per_second != 0; },
   sends_bytes,
   "has no effect on messages without bytes: give --cost bytes= too, or leave % out"},
  {"sum=", [](const cost_options& cost) { return cost.sum_rate != 0; }, has_sums,
   "has no effect where no ranks sum: say --mesh data=2 or tensor=2 too, or leave % "
   "out"},
};

} // namespace

std::string cost_without_effect(const options& o) {
  const auto sentence = [](std::string_view key, std::string_view belongs) {
    return "--cost " + std::string{key} + " " + with_name(belongs, key);
  };
  for (const auto& [key, said, matters, belongs] : effects_of_sizes) {
    if (!said(o.cost))
      continue;
    if (o.trains)
      return sentence(key, "applies only to simulations, as a training has the sizes "
                           "of its network: leave % out");
    if (!matters(o))
      return sentence(key, belongs);
  }
  for (const auto& [key, said, matters, belongs] : effects_of_times)
    if (said(o.cost) && !matters(o))
      return sentence(key, belongs);
  return {};
}

} // namespace troupe
