// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "messaging/collective.hpp"
#include "schedules/bounds.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Bounds of the copies of a stage's state: of weight versions, and of the optimizer
/// shard's moments.
struct copies_bound {
  payload_bound versions, moments;

  copies_bound times(int n) const {
    return {{n * versions.buffers, versions.values},
            {n * moments.buffers, moments.values}};
  }
};

/// The tensor memory that one stage at one position needs. Pools are made from these
/// sizes, and a run that would not fit is refused. Sizes are in values of 4 bytes, for
/// the largest microbatch; names with `slots`, `versions` or `stashes` count buffers.
struct stage_pools {
  // Values of each layer's parameters, and of the layer's gradients: the whole bucket,
  // or this data replica's share.
  std::vector<std::int64_t> buckets;
  std::vector<std::int64_t> gradients;
  int versions = 1;
  /// Values of buckets of older versions, in bf16.
  std::vector<std::int64_t> rounded_buckets;
  /// Versions in bf16; not counted in `versions`.
  int rounded_versions = 0;
  std::vector<std::int64_t> packed; ///< Packed matrices of each bucket.
  int snapshots = 0; ///< Copies of the parameters in transit to an evaluation.

  int stashes = 0;
  std::int64_t recomputed_output = 0; ///< Values of the output of a recomputed forward.
  std::int64_t stash = 0;
  int inputs_slots = 0; ///< Inputs of recomputed segments.
  std::int64_t inputs = 0;
  int kept_slots = 0; ///< Values kept from I to W.
  std::int64_t kept = 0;
  int boundary_slots = 0; ///< Activations to, and gradients from, the next stage.
  std::int64_t boundary = 0;
  int input_slots = 0; ///< Samples for the first stage, and labels for the last.
  std::int64_t input = 0;
  std::int64_t labels = 0;
  std::int64_t scratch = 0;
  /// Values of the optimizer state; 0 in all directions but one.
  std::int64_t optimizer = 0;
  std::int64_t exchanged = 0; ///< Values of copies in transit to data replicas.
  std::int64_t experts = 0;   ///< Values for the layers' experts on this rank.
  /// Values of parameters that data replicas update singly.
  std::int64_t shared = 0;
  payload_bound to_shards; ///< Copies in transit to tensor shards.
  payload_bound ties;      ///< Gradients in transit to the other end of a tied matrix.
  copies_bound saved;      ///< Copies for one checkpoint.
  copies_bound kept_steps; ///< Kept copies of the last two batches.

  // Where data replicas hold shares: whole parameters and gradients of two layers at
  // once.
  std::int64_t gathered = 0;
  std::int64_t whole_gradients = 0;
  payload_bound sums, gathers; ///< Copies of both, in transit.

  std::int64_t bytes() const;
};

/// Compute threads of a rank's team: the plan's `threads` divided over ranks, at least
/// 1; 1 in virtual time.
int team_size(const run_plan& plan, int rank);

/// Bounds of a stage's copies for one checkpoint, and of the copies that the stage
/// keeps of one step. Empty if the plan asks for none. \pre plan.work
copies_bound saved_copies(const run_plan& plan, position where);
copies_bound kept_copies(const run_plan& plan, position where);

/// The sizes of the pools of a stage on its rank. \pre plan.work
stage_pools pools_of(const run_plan& plan, position where);

/// Bytes of tensor memory that each rank of a plan needs, by rank. \pre plan.work
std::vector<std::int64_t> bytes_needed(const run_plan& plan);

/// Bytes of the buffers for messages between a stage and the next.
/// \param lower the stage \pre `lower` has a next stage
std::int64_t boundary_bytes(const run_plan& plan, position lower);

} // namespace troupe
