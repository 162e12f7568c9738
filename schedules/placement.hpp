// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/shape.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A stage of one direction of the schedule.
struct hosted_stage {
  int direction;
  int stage;

  bool operator==(const hosted_stage&) const = default;
};

/// "stage 2", "stage 2 (replica 1)".
std::string stage_name(hosted_stage where);

/// Which rank hosts which stages: functions of the shape. A schedule may bring its own.
///
///   linear          rank 0   1   2   3      bidirectional   rank 0   1   2   3
///                        s0  s1  s2  s3       direction 0        s0  s1  s2  s3
///                                             direction 1        s3  s2  s1  s0
///
///   looped          rank 0   1   2   3      waves           rank 0   1   2   3
///                        s0  s1  s2  s3                          s0  s1  s2  s3
///                        s4  s5  s6  s7                          s7  s6  s5  s4
struct placement {
  std::string_view name;
  /// Ways through the ranks: each has all stages, and an equal share of every batch.
  int directions = 1;
  /// Stages of each direction that a rank hosts, as v of interleaved schedules: who
  /// asks for a pipeline of so many ranks gets as many stages as they host.
  int stages_a_rank = 1;
  /// Ranks of one pipeline: 0 to ranks(dims) - 1, each of which hosts something.
  std::function<int(const shape& dims)> ranks;
  /// The rank that hosts a stage.
  std::function<int(const shape& dims, hosted_stage what)> host;
  /// All that a rank hosts, by stage, then direction: the inverse of `host`.
  std::function<std::vector<hosted_stage>(const shape& dims, int rank)> hosted;

  static placement linear();

  /// \param pairs of pipelines head to tail: pair i begins i / pairs of the way along
  /// the ranks, and goes around. At least 1
  static placement bidirectional(int pairs = 1);

  /// Stage s on rank s mod ranks. \param stages_a_rank at least 1
  static placement looped(int stages_a_rank);

  /// There and back along the ranks, so many times: with 1 a V. \param waves at least 1
  static placement waves(int waves);
};

/// The stages that a pipeline of so many ranks has; of more than a number holds, the
/// largest.
int stages_on(const placement& where, int ranks);

/// How many ranks a pipeline has.
int ranks_of(const placement& where, const shape& dims);

/// How many ways a schedule has through the ranks.
int directions_of(const placement& where);

/// The rank that hosts a stage.
int rank_of(const placement& where, const shape& dims, hosted_stage what);

/// What `rank` hosts, by stage, so that all ranks meet shared updates in one order.
std::vector<hosted_stage> hosted_by(const placement& where, const shape& dims,
                                    int rank);

/// What contradicts itself in a placement; empty if every stage of each direction has
/// one rank, and every rank a stage.
std::string contradiction(const placement& where, const shape& dims);

/// Index in the run of the `k`-th microbatch (counted over the run) of a direction. A
/// batch is dealt out in equal contiguous shares, direction 0 first.
int microbatch_of(const placement& where, const shape& dims, int direction, int k);

/// The direction that a microbatch runs through.
int direction_of(const placement& where, const shape& dims, int microbatch);

} // namespace troupe
