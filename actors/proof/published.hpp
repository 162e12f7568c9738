// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/action.hpp"
#include "schedules/shape.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

// Published formulas of schedules, in closed form, written a second time for proofs. A
// proof that called the run's own functions could not find errors in the functions. So
// this file includes only op and shape from schedules/; a test checks the includes.
//
// S stages on P ranks, stage s counted from 0; M microbatches a batch, T batches.
// Microbatch n counts from 0 over the run of one data replica. Chimera and DualPipe
// give each of two directions one half of a batch's microbatches. An update covers K
// microbatches of a stage; the last update covers the rest.

namespace troupe::published {

/// A published schedule: a name, and the parameters that the schedule's paper defines.
struct rule {
  std::string name;
  int update_every = 1;          ///< K of PipeDream.
  bool vertical_sync = false;    ///< Option of PipeDream.
  int max_active_keys = 4;       ///< AMPNet: most microbatches in flight at stage 0.
  int min_update_frequency = 8;  ///< K of AMPNet.
  int stages_a_rank = 1;         ///< v, of schedules with several stages a rank.
  bool forward_doubling = false; ///< Option of Chimera.

  bool operator==(const rule&) const = default;
};

/// Returns the published rule that a user named. Absent if the name has no published
/// rule, or if `parameters` asks for several pairs of directions (Chimera).
/// \param parameters as typed by the user; the optimizer's options are ignored. The
/// values `on` and `true` count as 1; other values that are no number count as 0
std::optional<rule> find(const std::string& name,
                         const std::map<std::string, std::string>& parameters);

/// True if no microbatch is in flight when an update is made, so that one version
/// exists.
bool flushes(const rule& paper_rule);

/// Number of directions in which microbatches run through the stages: 1 or 2.
int directions(const rule& paper_rule);

/// Returns P, the number of ranks of a pipeline.
int ranks(const rule& paper_rule, const shape& dims);

/// Returns the rank that hosts stage s of a direction. The second direction runs from
/// the last rank to the first. If a rank hosts several stages, interleaved and
/// looped_bfs give the rank every P-th stage. In other schedules the stages go forth
/// and back along the ranks.
int host(const rule& paper_rule, const shape& dims, int s, int direction);

/// The backwards that are split into input and weight gradients: none, some or all.
enum class split : std::uint8_t { none, partial, full };
/// Returns the backwards that the schedule splits.
split splits(const rule& paper_rule);

/// Returns K, the number of one direction's microbatches that an update of a stage
/// covers. The last update of the run may cover fewer.
int minibatch(const rule& paper_rule, const shape& dims);

/// Returns the number of a stage's updates in the run; all directions share each
/// update.
int updates(const rule& paper_rule, const shape& dims);

/// Number of one direction's microbatches that update u covers; u counts from 0. Not
/// positive for u beyond the last update.
int covered(const rule& paper_rule, const shape& dims, int u);

/// Index, over the run, of the last microbatch that update u covers, of all directions.
/// Absent for AMPNet, where the order follows arrivals.
std::optional<int> last_covered(const rule& paper_rule, const shape& dims, int u);

/// The slot (logical time) of microbatch n's forward, backward, input gradient or
/// weight gradient. A rank runs actions in the order of slots. Absent where this file
/// has no formula; AMPNet has a rule instead (published_order).
std::optional<std::int64_t> slot(const rule& paper_rule, const shape& dims,
                                 op operation, int s, int n);

/// The version that microbatch n's forward and backward read: version v is the result
/// of v updates. Absent for AMPNet, where passes read the newest version.
std::optional<int> version_read(const rule& paper_rule, const shape& dims, int s,
                                int n);

/// True if the run has at least 2 (S + K) microbatches in a direction. Such a run fills
/// the pipeline, so that stages reach the largest number of versions. A shorter run may
/// keep fewer versions.
bool is_steady(const rule& paper_rule, const shape& dims);

/// Largest number of versions alive at the same time on a stage, if is_steady(). Alive
/// are the newest version, and each version that a microbatch in flight or a later one
/// still reads.
int versions_kept(const rule& paper_rule, const shape& dims, int s);

/// Staleness of microbatch n's gradient: the version from which the gradient's update
/// starts, minus the version that the microbatch's forward read. Absent for AMPNet,
/// which has only a bound.
std::optional<int> staleness(const rule& paper_rule, const shape& dims, int s, int n);

/// Largest staleness of a gradient on stage s. For AMPNet this is a bound, which holds
/// as long as no microbatch overtakes another.
int max_staleness(const rule& paper_rule, const shape& dims, int s);

/// Largest number of microbatches that a rank holds at the same time, summed over its
/// stages. A rank holds a microbatch from the start of the forward to the end of the
/// backward or weight gradient. For AMPNet the number is an upper bound. Absent where
/// this file has no formula for the rule or for the number of microbatches.
/// \pre a batch has enough microbatches for the schedule: DualPipe and DualPipeV need
/// 2P
std::optional<int> activations_held(const rule& paper_rule, const shape& dims,
                                    int rank);

/// The time of each action of a stage, in one unit of the caller's choice.
struct action_times {
  std::int64_t forward, backward, input_gradient, weight_gradient;
};

/// Makespan and idle time of a batch, in the unit of action_times. All actions of a
/// kind take one time; updates and messages take no time.
struct batch_time {
  std::int64_t makespan;
  std::int64_t idle; ///< Idle time of each rank, equal on all ranks.
  /// True if no rank is idle between the rank's first and last action. The next batch
  /// then follows without a gap, and a run of several batches has this idle time once,
  /// unless all stages update together.
  bool at_ends = false;

  bool operator==(const batch_time&) const = default;
};

/// Makespan and idle time of a run of `batches` batches, from the times of one batch.
/// \param together true if all stages update together, so that no batch begins before
/// the previous batch has ended on every rank
batch_time times(const batch_time& batch, int batches, bool together = false);

/// Returns the time of one batch. Absent where this file has no formula: for schedules
/// without a flush, and for others at some sizes and times.
std::optional<batch_time> time_of_batch(const rule& paper_rule, const shape& dims,
                                        const action_times& each);

} // namespace troupe::published
