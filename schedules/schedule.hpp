// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/action.hpp"
#include "schedules/placement.hpp"
#include "schedules/shape.hpp"
#include "schedules/weights.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// Schedules as values: the placement of stages, the order of actions and the rule of
// weight versions, with functions that derive sizes and versions.

namespace troupe {

/// The logical time of an action on a direction's k-th microbatch. `k` counts from 0 in
/// the batch, or in the run if the schedule streams. Only the order of slots matters: a
/// rank runs actions sorted by slot, each as soon as the input has arrived. For one
/// stage and operation, slots increase with k. Actions in equal slots are ordered by
/// stage, then by direction, then by operation: F, then B or I, then W. A schedule that
/// splits backwards has slots of I and W instead of B.
using slot_formula =
  std::function<std::int64_t(op operation, int stage, int k, const shape& dims)>;

/// Generates the actions of one rank over the whole run, one per call; absent at the
/// end.
using action_generator = std::function<std::optional<action>()>;

/// Starts the generator of a rank, updates included, for schedules that no formula
/// fits. A generator need not store all actions of the run, and may cross batches. If
/// schedule::repeats, the program repeats once the pipeline is full, and needs no
/// larger bounds than in a `settled` run (bounds.hpp).
using explicit_program = std::function<action_generator(int rank, const shape& dims)>;

/// A rule without a program: a rank runs any action whose input has arrived. Due
/// updates come first, then backwards, then forwards. Backwards and forwards run with
/// the lowest microbatch first.
struct backward_first {
  /// Most microbatches between the start of F and the end of B at stage 0; at least 1.
  int max_active_keys;
};

/// The state of an idle rank, from which a user's rule chooses the next action.
struct local_view {
  int rank;
  /// The forwards that could start, then the backwards, each sorted by stage and
  /// microbatch. Forwards of stage 0 are left out while max_active_keys are in flight,
  /// or while the run admits no more microbatches.
  std::vector<action> arrived;
  /// Number of stage-microbatches on this rank between the start of F and the end of B.
  int held;
  int may_hold; ///< Limit of `held`: max_active_keys times the stages of the rank.
};

/// A local rule of the user. Updates run as soon as due, and the rule chooses among all
/// other actions. Equal arrivals must give equal choices, or no run can be repeated.
struct user_rule {
  /// Returns one of view.arrived, which is not empty; absent: the rank waits for the
  /// next arrival. A rule may not wait where nothing else can arrive. Threads of the
  /// run call the rule; calls for one rank never overlap.
  std::function<std::optional<action>(const local_view& view)> choose;
  /// Most microbatches between the start of F and the end of B at stage 0; at least 1.
  int max_active_keys = 4;
};

/// The part of a microbatch that a stage stashes from forward to backward, and the time
/// of the recomputation.
enum class recomputation : std::uint8_t {
  none,  ///< Everything that the backward needs is stashed.
  late,  ///< Inputs only; the forward runs again when the gradient has arrived.
  ahead, ///< Inputs only; the forward runs again once the backward is the next action.
};

/// A schedule as data, in three independent choices. `where` maps stages to ranks.
/// `order` chooses the action that a rank runs next. `weights` chooses the versions
/// that actions read.
struct schedule {
  std::string name;
  placement where = placement::linear();
  std::variant<slot_formula, explicit_program, backward_first, user_rule> order;
  weight_rule weights = weights::flush;
  /// True if the slot formula splits each backward into an input gradient and a weight
  /// gradient.
  bool splits_backward = false;
  /// Most stage-microbatches that a rank's program may hold at the same time; 0: no
  /// limit. Must be 0 with a local rule.
  int most_held = 0;
  /// Whether and when forwards run again. Each recomputation is an action before the
  /// backward, input gradient or pair that needs the activations.
  recomputation recomputes = recomputation::none;
  /// True if backwards of a stage may come in any order; the plain loop then sums in
  /// the order of the programs. Otherwise backwards must come in increasing order, so
  /// that sums have the same bits under all schedules.
  bool sums_in_any_order = false;
  /// True if programs repeat once the pipeline is full, so that a shorter run has the
  /// same bounds.
  bool repeats = true;
  /// True if batches follow one another without a flush.
  bool streams = false;
  /// Microbatches that an update of a stage covers; 0: the batch. The last update of a
  /// run may cover fewer.
  int update_every = 0;
  /// True if directions send gradients to a shared update bucket by bucket, as soon as
  /// the last backward has completed a bucket. Otherwise a direction sends gradients
  /// when the rank has run all backwards of the batch. Unused with one direction.
  bool eager = true;
  /// Returns one sentence about the allowed sizes if `dims` is not allowed, else an
  /// empty text. An empty function allows all sizes.
  std::function<std::string(const shape& dims)> refuses = {};

  /// True if the weight rule does not flush, so that gradients may be stale.
  bool asynchronous() const { return !weights.flushes; }

  /// True if each rank orders work by the inputs that have arrived, without a program.
  bool local_rule() const { return active_keys().has_value(); }

  /// The value of max_active_keys under a local rule; absent for other schedules.
  std::optional<int> active_keys() const {
    if (const auto* rule = std::get_if<backward_first>(&order))
      return rule->max_active_keys;
    if (const auto* rule = std::get_if<user_rule>(&order))
      return rule->max_active_keys;
    return {};
  }
};

/// Number of microbatches that an update of one stage covers, over all directions. The
/// last update of a run may cover fewer.
int update_size(const schedule& sch, const shape& dims);

/// Number of updates of a stage before the run; 0 unless the run resumes.
/// \pre the batches before the run are whole updates
int versions_before(const schedule& sch, const shape& dims);

/// The version that a forward reads by the schedule's formula; absent if the forward
/// reads the newest version. Numbers count from the start of the run, as in `shape`. In
/// place of a version from before the run that does not exist, -dims.older is returned.
std::optional<int> version_read(const schedule& sch, const shape& dims, int stage,
                                int microbatch);

/// Number of microbatches that one direction runs in the run.
int microbatches_of_direction(const schedule& sch, const shape& dims);

/// The oldest version that a later forward of a stage may read, once `forwarded`
/// microbatches of the direction have been forwarded. `no_version_needed` if no forward
/// needs a kept version.
int oldest_version_needed(const schedule& sch, const shape& dims, hosted_stage where,
                          int forwarded);

/// The value of oldest_version_needed() if no version is needed; above every version.
inline constexpr int no_version_needed = std::numeric_limits<int>::max();

/// Largest number of stages of a run.
inline constexpr int most_stages = 1 << 20;

/// One sentence that says why these sizes or the schedule's fields are not allowed, and
/// which sizes are; empty if `dims` is allowed. Does not validate the placement's
/// mapping or the programs: see check().
std::string validation_error(const schedule& sch, const shape& dims);

/// Like validation_error() above. The sentence also names the --microbatches that the
/// schedule's own rules allow, if more microbatches help.
/// \param sch schedule of the run
/// \param dims sizes of each data replica
/// \param replicas number of data replicas, which divide --microbatches equally
std::string validation_error(const schedule& sch, const shape& dims, int replicas);

} // namespace troupe
