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

namespace troupe {

/// The logical time of the forward or backward of a direction's k-th microbatch (of the
/// batch, or of the run if the schedule streams). Only the order of slots matters: a
/// rank runs its actions sorted by slot, each as early as its input is there. For one
/// stage and op, slots increase with k. Of equal slots that of the lower stage goes
/// first. A schedule that splits backwards is asked for those of I and W instead.
using slot_formula =
  std::function<std::int64_t(op what, int stage, int k, const shape& dims)>;

/// The actions of one rank over the whole run, one a call; none when all are done.
using action_generator = std::function<std::optional<action>()>;

/// Starts the generator of a rank, updates included: for schedules that no formula
/// fits. A generator keeps no list of the run, and may cross batches. Once the pipeline
/// is full it repeats itself, and holds no more than in a `settled` run (bounds.hpp).
using explicit_program = std::function<action_generator(int rank, const shape& dims)>;

/// No order of its own: a rank runs what has arrived, backwards first.
struct backward_first {
  int max_active_keys; ///< Microbatches forwarded but not yet backwarded at stage 0.
};

/// What a rank knows when it is free and a rule of one's own is to choose.
struct local_view {
  int rank;
  /// The forwards and backwards that could begin, in that order, by stage and
  /// microbatch. Stage 0 has the next microbatch among them unless max_active_keys are
  /// in flight.
  std::vector<action> arrived;
  int held;     ///< Stage-microbatches between the start of F and the end of B,
  int may_hold; ///< and how many there may be.
};

/// A local rule of one's own. Updates are made as soon as they are due; what else a
/// rank runs next is its choice. Same arrivals, same choice: else no run repeats.
struct own_rule {
  /// One of view.arrived; none: the rank waits for what arrives next. It may not wait
  /// where nothing else can arrive. Called on threads of the run, a rank at a time.
  std::function<std::optional<action>(const local_view& view)> choose;
  int max_active_keys = 4; ///< As backward_first's.
};

/// What a stage keeps of a microbatch from its forward to its backward, and when it
/// makes the rest again.
enum class recomputation : std::uint8_t {
  none,  ///< All that the backward needs is kept.
  late,  ///< Inputs alone; the forward runs again when the gradient has come.
  ahead, ///< Likewise, but as soon as the backward is the next action of the rank.
};

/// A schedule is data, in three independent choices: which rank hosts which stages
/// (`where`), what a rank runs next (`order`), and which weights it reads (`weights`).
struct schedule {
  std::string name;
  placement where = placement::linear();
  std::variant<slot_formula, explicit_program, backward_first, own_rule> order;
  weight_rule weights = weights::flush;
  /// A slot formula has an input gradient and a weight gradient for each backward.
  bool splits_backward = false;
  /// Stage-microbatches that a rank may hold at once; 0: as many as it does.
  int most_held = 0;
  /// Forwards that run again: each as an action before the one that needs it.
  recomputation recomputes = recomputation::none;
  /// Backwards of a stage need not be in increasing order: the plain loop then sums in
  /// the programs' order. Else they must, so that sums have the bits of all others.
  bool sums_in_any_order = false;
  /// Programs repeat themselves once the pipeline is full: a shorter run says it all.
  bool repeats = true;
  /// Batches follow one another without a flush.
  bool streams = false;
  /// Microbatches that an update of a stage covers; 0: the batch.
  int update_every = 0;
  /// Whether a direction sends its gradients to the other bucket by bucket, as soon as
  /// its last backward has completed one; else when its rank has run all backwards.
  bool eager = true;
  /// Says what is allowed when the sizes are not, else nothing. Empty: all sizes are.
  std::function<std::string(const shape& dims)> refuses = {};

  /// Whether updates wait for no flush, so that gradients may be stale.
  bool asynchronous() const { return !weights.flushes; }

  /// Whether each stage orders its own work by what has arrived.
  bool local_rule() const { return active_keys().has_value(); }

  /// Of a local rule: microbatches in flight at stage 0 at most.
  std::optional<int> active_keys() const {
    if (const auto* rule = std::get_if<backward_first>(&order))
      return rule->max_active_keys;
    if (const auto* rule = std::get_if<own_rule>(&order))
      return rule->max_active_keys;
    return {};
  }
};

/// How many microbatches an update of one stage covers.
int update_size(const schedule& sch, const shape& dims);

/// The updates of a stage before the run. \pre the batches before it are whole updates
int versions_before(const schedule& sch, const shape& dims);

/// The version that a forward reads by the schedule's formula; absent if that is
/// whatever is newest then. Of versions that are not there any more the oldest is read.
std::optional<int> version_read(const schedule& sch, const shape& dims, int stage,
                                int microbatch);

/// The microbatches that one direction sees in the run.
int microbatches_of_direction(const schedule& sch, const shape& dims);

/// The oldest version that any forward still to come may read, when `forwarded` of a
/// direction's microbatches have been; `no_version_needed` if none needs a kept one.
int oldest_version_needed(const schedule& sch, const shape& dims, hosted_stage where,
                          int forwarded);

/// Newer than every version.
inline constexpr int no_version_needed = std::numeric_limits<int>::max();

/// So many stages a run may have.
inline constexpr int most_stages = 1 << 20;

/// Why these sizes cannot be run, with what is allowed; empty if they can.
std::string refusal(const schedule& sch, const shape& dims);

} // namespace troupe
