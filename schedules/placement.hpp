// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/shape.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

// Placements: which rank of a pipeline hosts which stages.

namespace troupe {

/// A stage of one direction of the schedule.
struct hosted_stage {
  int direction;
  int stage;

  bool operator==(const hosted_stage&) const = default;
};

/// The name of a stage in messages: "stage 2" in direction 0, "stage 2 (replica d)" in
/// a direction d above 0.
std::string stage_name(hosted_stage where);

/// A mapping of stages to ranks, as functions of the shape. A schedule may use a
/// placement of the static functions below, or define another placement.
struct placement {
  std::string_view name;
  /// Number of directions through the ranks. Each direction has all stages, and an
  /// equal share of every batch.
  int directions = 1;
  /// Number of stages of each direction that a rank hosts; v in papers on interleaved
  /// schedules. A pipeline of R ranks has R times `stages_a_rank` stages. The placement
  /// of a schedule file has 1 here, even if ranks host several stages.
  int stages_a_rank = 1;
  /// Number of ranks of one pipeline: ranks are 0 to ranks(dims) - 1, and each rank
  /// hosts at least one stage.
  std::function<int(const shape& dims)> ranks;
  /// The rank that hosts a stage.
  std::function<int(const shape& dims, hosted_stage hosted)> host;
  /// All stages that a rank hosts, sorted by stage, then direction: the inverse of
  /// `host`.
  std::function<std::vector<hosted_stage>(const shape& dims, int rank)> hosted;

  /// Stage s on rank s.
  static placement linear();

  /// Pairs of pipelines in opposite directions.
  /// \param pairs number of pairs, at least 1: pair i starts i / pairs of the way along
  /// the ranks, and wraps around
  static placement bidirectional(int pairs = 1);

  /// Stage s on rank s mod ranks.
  /// \param stages_a_rank at least 1
  static placement looped(int stages_a_rank);

  /// Stages run along the ranks and back, once for each wave: one wave is a V.
  /// \param waves at least 1
  static placement waves(int waves);
};

/// Number of stages of a pipeline with `ranks` ranks: `ranks` times
/// placement::stages_a_rank, but at most the largest int.
int stages_on(const placement& where, int ranks);

/// Number of ranks of a pipeline.
int ranks_of(const placement& where, const shape& dims);

/// Number of directions of a placement through the ranks.
int directions_of(const placement& where);

/// The rank that hosts a stage.
int rank_of(const placement& where, const shape& dims, hosted_stage hosted);

/// The stages that `rank` hosts, sorted by stage, then direction, so that all ranks
/// reach shared updates in one order.
std::vector<hosted_stage> hosted_by(const placement& where, const shape& dims,
                                    int rank);

/// One sentence about the first error in a placement. Empty if every stage of each
/// direction has one rank, and every rank lists at least one stage, in increasing
/// order.
/// \pre the functions of `where` are not empty
std::string validation_error(const placement& where, const shape& dims);

/// Index in the run of the `k`-th microbatch of a direction; `k` counts over the run,
/// from 0. A batch is divided into equal contiguous shares, direction 0 first.
/// \pre the microbatches of a batch are a multiple of the directions
int microbatch_of(const placement& where, const shape& dims, int direction, int k);

/// The direction that runs a microbatch, by the shares of microbatch_of().
int direction_of(const placement& where, const shape& dims, int microbatch);

} // namespace troupe
