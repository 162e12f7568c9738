// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"

#include <cstdint>

namespace troupe {

/// How much tensor memory experts take on the rank of a stage; sizes in values, of the
/// largest microbatch.
struct expert_sizes {
  std::int64_t rows = 0;    ///< That one data replica may send one expert.
  int sources = 0;          ///< Data replicas that do.
  std::int64_t width = 0;   ///< Of a row.
  std::int64_t stash = 0;   ///< Of one expert and microbatch.
  std::int64_t split = 0;   ///< Likewise, from I to W.
  std::int64_t scratch = 0; ///< Of one expert.
  std::int64_t payload = 0; ///< Of one message.

  /// All, for the experts of a stage that stand with it.
  /// \param a_layer experts in a layer
  /// \param stashes of the stage \param split_slots of its microbatches from I to W
  std::int64_t values(int hosted, int a_layer, int stashes, int split_slots) const;
};

/// \param expert in the network's list \pre plan.work
expert_sizes sizes_of_expert(const run_plan& plan, int expert);

/// Values of a row to an expert; where nothing is computed a row is a value.
std::int64_t width_of_rows(const run_plan& plan);

/// The share of an action's work that is its experts' where nothing is computed: that
/// of one feed-forward half of four halves of blocks that cost as GPT's do.
inline constexpr double simulated_expert_share = 1.0 / 3;

} // namespace troupe
