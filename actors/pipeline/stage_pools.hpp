// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "messaging/collective.hpp"
#include "schedules/bounds.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Copies of what a stage has: of its versions, and of its optimizer shard's moments.
struct copies_bound {
  payload_bound versions, moments;

  copies_bound times(int n) const {
    return {{n * versions.buffers, versions.values},
            {n * moments.buffers, moments.values}};
  }
};

/// How much tensor memory one replica of a stage needs: the pools are made from it, and
/// a run that would not fit is refused by it. Sizes in values, of the largest
/// microbatch.
struct stage_pools {
  // Parameters of each layer, and their gradients: all, or the share that data replicas
  // leave to each.
  std::vector<std::int64_t> buckets;
  std::vector<std::int64_t> gradients;
  int versions = 1;
  std::vector<std::int64_t> rounded_buckets; ///< Of older versions kept as bf16,
  int rounded_versions = 0;                  ///< which are not among `versions`.
  std::vector<std::int64_t> packed;          ///< Of each: matrices that stay packed.
  int snapshots = 0; ///< Copies of the parameters under way to an evaluation.

  int stashes = 0;
  std::int64_t output_again = 0; ///< Of a forward that is run again.
  std::int64_t stash = 0;
  int inputs_slots = 0; ///< Inputs of segments that are recomputed.
  std::int64_t inputs = 0;
  int kept_slots = 0; ///< Between I and W.
  std::int64_t kept = 0;
  int boundary_slots = 0; ///< Activations to the next stage, and gradients from it.
  std::int64_t boundary = 0;
  int input_slots = 0; ///< Samples for the first stage, and labels for the last.
  std::int64_t input = 0;
  std::int64_t labels = 0;
  std::int64_t scratch = 0;
  std::int64_t optimizer = 0; ///< Its state; 0 in all but one replica.
  std::int64_t exchanged = 0; ///< Copies under way to data replicas.
  std::int64_t experts = 0;   ///< What those of its layers take on its rank.
  std::int64_t shared = 0;    ///< What data replicas update one by one.
  payload_bound to_shards;    ///< Copies under way to tensor shards.
  payload_bound ties;      ///< Gradients under way to the other end of a tied matrix.
  copies_bound saved;      ///< For one checkpoint.
  copies_bound kept_steps; ///< Of the last two.

  // Where parameters and gradients are shared out: whole ones of two layers at once.
  std::int64_t gathered = 0;
  std::int64_t whole_gradients = 0;
  payload_bound sums, gathers; ///< Copies of them under way.

  std::int64_t bytes() const;
};

/// The teams of the ranks: `threads` shared out, at least one each.
int team_size(const run_plan& plan, int rank);

/// Copies of a stage for one checkpoint, and those of a step that it keeps; none if the
/// plan has none. \pre plan.work
copies_bound saved_copies(const run_plan& plan, position where);
copies_bound kept_copies(const run_plan& plan, position where);

/// The pools of a stage on a rank. \pre plan.work
stage_pools pools_of(const run_plan& plan, position where);

/// Bytes that each rank of a plan needs. \pre plan.work
std::vector<std::int64_t> bytes_needed(const run_plan& plan);

/// Bytes of the buffers for messages between a stage and the next. \pre there is one
std::int64_t boundary_bytes(const run_plan& plan, position lower);

} // namespace troupe
