// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/action.hpp"
#include "schedules/shape.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

// What papers say of their schedules, in closed form, written a second time. A proof
// that asked the functions on which a run goes would hear the run's own opinion; so
// nothing of schedules/ but op and shape is included here, which a test sees to.
//
// S stages, of which s counts from 0, on P ranks; M microbatches a batch, T batches.
// Microbatch n counts from 0 over the run of one data replica; a batch's are dealt out
// to the two directions of Chimera and DualPipe in halves. An update covers K
// microbatches of its stage, the last one what is left.

namespace troupe::published {

/// A schedule by its name, and by the parameters that its paper gives it.
struct rule {
  std::string name;
  int update_every = 1;          ///< Of PipeDream: K.
  bool vertical_sync = false;    ///< Of PipeDream.
  int max_active_keys = 4;       ///< Of AMPNet: microbatches in flight at stage 0.
  int min_update_frequency = 8;  ///< Of AMPNet: K.
  int stages_a_rank = 1;         ///< Of schedules that give a rank several: v.
  bool forward_doubling = false; ///< Of Chimera.

  bool operator==(const rule&) const = default;
};

/// The rule that a user named, with the parameters as typed; absent where none is
/// published. Options of optimizers among the parameters are ignored.
std::optional<rule> find(const std::string& name,
                         const std::map<std::string, std::string>& parameters);

/// Whether nothing is in flight when an update is made, so that there is one version.
bool flushes(const rule& by);

/// Directions in which microbatches run through the stages.
int directions(const rule& by);

/// P, and the rank that hosts a stage of a direction. The second direction runs from
/// the last rank to the first; of several stages a rank has every P-th, or they go
/// there and back along the ranks.
int ranks(const rule& by, const shape& dims);
int host(const rule& by, const shape& dims, int s, int direction);

/// Whether backwards come as input gradients and weight gradients.
enum class split : std::uint8_t { none, some, all };
split splits(const rule& by);

/// K, for one direction of a stage; and how many updates a stage makes in the run.
int minibatch(const rule& by, const shape& dims);
int updates(const rule& by, const shape& dims);

/// Microbatches that update u, from 0, covers of one direction.
int covered(const rule& by, const shape& dims, int u);

/// The last that it covers of all; absent for AMPNet, where they come as they come.
std::optional<int> last_covered(const rule& by, const shape& dims, int u);

/// The logical time of microbatch n's forward, backward or half of one: a rank runs
/// what it has in the order of these. Absent where no paper has a formula, as for
/// AMPNet, which has a rule instead (published_order).
std::optional<std::int64_t> slot(const rule& by, const shape& dims, op what, int s,
                                 int n);

/// The version that the forward and the backward of microbatch n read: how many updates
/// have made it. Absent where they read the newest, whatever that is.
std::optional<int> version_read(const rule& by, const shape& dims, int s, int n);

/// Whether the run is long enough to fill, so that stages keep as many versions as they
/// ever would; a shorter one may keep fewer.
bool is_steady(const rule& by, const shape& dims);

/// Versions alive at once on a stage: those that a microbatch in flight reads or one to
/// come will read, and the newest.
int versions_kept(const rule& by, const shape& dims, int s);

/// How many updates an update that covers microbatch n starts behind what its forward
/// read. Absent for AMPNet, which has a bound alone, as long as no microbatch overtakes
/// another.
std::optional<int> staleness(const rule& by, const shape& dims, int s, int n);
int max_staleness(const rule& by, const shape& dims, int s);

/// Microbatches of a stage that a rank holds at once, from the start of their forward
/// to the end of their backward or weight gradient. Of AMPNet the most that it may
/// hold; absent where no paper has a number.
std::optional<int> activations_held(const rule& by, const shape& dims, int rank);

/// What each action of a stage takes.
struct action_times {
  std::int64_t forward, backward, input_gradient, weight_gradient;
};

/// What a batch takes where every action takes as long as the others of its kind, and
/// updates and messages take nothing.
struct batch_time {
  std::int64_t makespan;
  std::int64_t idle; ///< Of every rank.
  /// No rank is idle between its first action and its last, so that the next batch
  /// follows without a gap: a run of several has this idle time once.
  bool at_ends = false;

  bool operator==(const batch_time&) const = default;
};

/// What so many batches take. \param together whether all stages update together, so
/// that no batch begins before the last one has ended everywhere
batch_time times(const batch_time& one, int batches, bool together = false);

/// Absent where no paper has a formula: for schedules that do not flush, and for others
/// at some sizes and times.
std::optional<batch_time> time_of_batch(const rule& by, const shape& dims,
                                        const action_times& each);

} // namespace troupe::published
