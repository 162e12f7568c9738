// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/run_plan.hpp"

#include <cstdint>

namespace troupe {

/// The tensor memory that experts need on the rank of a stage. Sizes are in 4-byte
/// values, for the largest microbatch. `stash`, `split` and `scratch` cover the rows of
/// all `sources`.
struct expert_sizes {
  std::int64_t rows = 0;    ///< Most rows of one data replica for one expert.
  int sources = 0;          ///< Number of data replicas that send rows to an expert.
  std::int64_t width = 0;   ///< Values per row.
  std::int64_t stash = 0;   ///< Values of one expert's stash for one microbatch.
  std::int64_t split = 0;   ///< Values that one expert keeps from I to W.
  std::int64_t scratch = 0; ///< Values of one expert's scratch memory.
  std::int64_t payload = 0; ///< Largest number of values in the rows of one message.

  /// The number of values that all experts of a stage need on the stage's rank. The
  /// number includes the buffers of the stage's messages to experts, also to experts of
  /// other ranks.
  /// \param hosted number of the stage's experts on the rank
  /// \param a_layer number of experts in a layer
  /// \param stashes number of microbatches that the stage stashes
  /// \param split_slots number of microbatches that the stage keeps from I to W
  std::int64_t values(int hosted, int a_layer, int stashes, int split_slots) const;
};

/// The sizes for one expert.
/// \param expert index in the network's list of experts
/// \pre plan.work
expert_sizes sizes_of_expert(const run_plan& plan, int expert);

/// Number of values in a row that is sent to an expert; 1 in a simulation.
/// \pre the network of plan.work, if present, has experts
std::int64_t width_of_rows(const run_plan& plan);

/// The experts' share of an action's work in a simulation. Every second GPT block has
/// experts in place of the feed-forward part, and that part is 2/3 of a block's cost.
inline constexpr double simulated_expert_share = 1.0 / 3;

} // namespace troupe
