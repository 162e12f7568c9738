// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective.hpp"
#include "plan/run_plan.hpp"
#include "schedules/bounds.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// The number and size of the buffers for copies of a stage's state: of weight
/// versions, and of the optimizer shard's state.
struct copies_bound {
  payload_bound versions, state;

  /// The bound for `n` times as many buffers of the same sizes.
  copies_bound times(int n) const {
    return {{n * versions.buffers, versions.values}, {n * state.buffers, state.values}};
  }
};

/// The tensor memory that one stage at one position needs. Pools are made from these
/// sizes, and a run that would not fit is refused. Sizes are in values of 4 bytes, for
/// the largest microbatch. Members of type int are counts; `name_slots` counts buffers
/// of size `name`. Members for which a stage needs no memory are 0.
struct stage_pools {
  // Values of each bucket's parameters, and of each bucket's gradients: the whole
  // bucket, or this data replica's share.
  std::vector<std::int64_t> buckets;
  std::vector<std::int64_t> gradients;
  int versions = 1; ///< Number of versions in fp32.
  /// Size of each bucket of an older version with matrices in bf16, in 4-byte values.
  std::vector<std::int64_t> rounded_buckets;
  /// Number of older versions in bf16; `versions` does not count these.
  int rounded_versions = 0;
  std::vector<std::int64_t> packed; ///< Values of each bucket's packed matrices.
  /// Number of copies of the parameters in transit to an evaluation.
  int snapshots = 0;

  int stashes = 0; ///< Number of stashes; `stash` is the size of one.
  std::int64_t recomputed_output = 0; ///< Values of the output of a recomputed forward.
  std::int64_t stash = 0;
  /// Buffers for inputs of recomputed segments, without a stage's first segment.
  int inputs_slots = 0;
  std::int64_t inputs = 0;
  int kept_slots = 0; ///< Buffers for values kept from I to W.
  std::int64_t kept = 0;
  /// Buffers for activations to, and gradients from, the next stage.
  int boundary_slots = 0;
  std::int64_t boundary = 0;
  /// Buffers for samples of the first stage. An equal number of buffers holds the
  /// labels for the last stage.
  int input_slots = 0;
  std::int64_t input = 0;
  std::int64_t labels = 0;
  std::int64_t scratch = 0;
  /// Values of the optimizer state; 0 in all directions but the first.
  std::int64_t optimizer = 0;
  /// Values of copies in transit to data replicas in the exchanges of an update.
  std::int64_t exchanged = 0;
  std::int64_t experts = 0; ///< Values for the layers' experts on this rank.
  /// Values of parameters that data replicas update one by one (servers, Hogwild).
  std::int64_t shared = 0;
  payload_bound to_shards; ///< Copies in transit to tensor shards.
  payload_bound ties;      ///< Gradients in transit to the other end of a tied matrix.
  copies_bound saved;      ///< Copies for one checkpoint.
  copies_bound kept_steps; ///< Kept copies of the last two batches.

  // Sizes of buffers for a whole bucket, the stage's largest, where data replicas hold
  // shares: `gathered` for parameters (ZeRO 3), `whole_gradients` for gradients (ZeRO 2
  // and 3). Each has two buffers.
  std::int64_t gathered = 0;
  std::int64_t whole_gradients = 0;
  payload_bound sums, gathers; ///< Copies in transit in passes: gradients, parameters.

  /// Bytes of all buffers together. Not included are receive_buffers, for messages from
  /// other processes, and a second pool for the tensors between the stage before and
  /// this stage (boundary_bytes()). The second pool exists where both stages share
  /// none.
  std::int64_t bytes() const;
};

/// Number of compute threads of a rank: the plan's `threads` divided by the number of
/// ranks, at least 1. The first ranks have one more thread each if the division leaves
/// a remainder. In virtual time 1.
int team_size(const run_plan& plan, int rank);

/// Bounds of a stage's copies for one checkpoint; all 0 if the plan has no checkpoints.
/// \pre plan.work
copies_bound saved_copies(const run_plan& plan, position where);

/// Bounds of the copies that a stage keeps after one batch (state_copies::keep_steps);
/// all 0 if the plan keeps none. \pre plan.work
copies_bound kept_copies(const run_plan& plan, position where);

/// The sizes of the pools of a stage on its rank.
/// \pre plan.work
stage_pools pools_of(const run_plan& plan, position where);

/// Bytes of tensor memory that the stages of each rank of a plan need, by rank.
/// \pre plan.work
std::vector<std::int64_t> bytes_needed(const run_plan& plan);

/// Bytes of one pool of the buffers for tensors between a stage and the next stage.
/// \param lower the lower of the two stages
/// \pre plan.work, and `lower` has a next stage
std::int64_t boundary_bytes(const run_plan& plan, position lower);

} // namespace troupe
