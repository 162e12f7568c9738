// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/device.hpp"
#include "schedules/timeline.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

// The record of a run: the actions that each rank ran, and the measures of a run.

namespace troupe {

/// The meetings that begin when a part of an action has ended, as flags. The rank may
/// have to wait for these meetings.
enum part_end : std::uint8_t {
  nothing = 0,
  shards_meet = 1, ///< Tensor shards sum or gather.
  /// The part was the last of a layer whose arrays data replicas gather or sum.
  layer_ends = 2,
  /// The squares for the norm of an update's gradients were computed.
  norm_measured = 4,
  version_made = 8,   ///< The part made this data replica's share of a version.
  experts_asked = 16, ///< Rows have been sent to the experts of a layer.
  tie_given = 32,     ///< Gradients of a tied matrix have been sent.
};

/// An action that has run, with times on the run's clock.
struct measured_action {
  troupe::action action;
  nanoseconds start = 0;
  nanoseconds end = 0;
  /// Part of the measured time from start to end in which the action's thread had no
  /// processor: other programs ran, or the action slept. Modelled times leave this part
  /// out. 0 in virtual time and on a GPU.
  nanoseconds off_processor_time = 0;
  int version = 0; ///< Version of the stage that a pass read, or that an update made.
  /// Number of versions of the stage that are alive at the end of the action.
  int versions_alive = 1;
  bool part = false; ///< True for a part of the action that other parts follow.
  int gradients = 0; ///< Number of gradients that an update covers; else 0.
  int stalest = 0;   ///< Largest staleness of a gradient of the update.
  std::int64_t staleness = 0; ///< Sum of the staleness of all gradients of the update.
  /// Index of the expert that ran the action or part; -1 if the stage or an optimizer
  /// did.
  int expert = -1;
  /// The meetings that began at the end: flags of part_end.
  std::uint8_t ends_in = nothing;
};

/// An action that has run, or a part of one, and the rank that ran it.
struct ranked_action {
  int rank;
  measured_action measured;
};

/// The actions that ranks have run since an observer last took actions.
struct recent_actions {
  std::vector<ranked_action> ran; ///< Actions in the order in which ranks reported.
  /// Latest end of an action that was dropped because too many waited for the observer,
  /// on the run's clock; 0 if none was dropped.
  nanoseconds dropped_to = 0;
};

/// The actions of every rank, in the rank's order.
using record = std::vector<std::vector<measured_action>>;

/// The numbers of tokens for the experts of each layer, one entry per batch. In a long
/// run an entry covers several batches, so that there are at most most_entries entries
/// per layer.
struct expert_loads {
  struct step {
    std::vector<std::int64_t> rows; ///< Rows of each expert, over all replicas.
    /// Choices that were dropped because the expert was full.
    std::int64_t dropped = 0;

    void add(const step& addend);
  };

  void add(int batch, std::size_t layer, const std::vector<std::int64_t>& rows,
           std::int64_t dropped);
  void halve();

  /// Entries by index of the layer in the network.
  std::map<std::size_t, std::vector<step>> by_layer;
  int every = 1; ///< Number of batches that an entry sums.
};

/// Returns the actions of a record, with times.
timeline timeline_of(const record& ran);

/// The measures of a run. Arrays have one entry per rank or per stage, as in
/// results.json. Times are nanoseconds of the run's clock.
struct measures {
  /// Time from the start of the run to the last action's end.
  nanoseconds makespan = 0;
  std::vector<nanoseconds> busy; ///< Per rank: sum of the durations of actions.
  /// Per rank: sum of the measured durations of actions, by the wall. Differs from
  /// `busy` if times are modelled.
  std::vector<nanoseconds> wall_time;
  /// Per rank: part of `wall_time` in which the actions' threads had no processor.
  std::vector<nanoseconds> off_processor_time;
  /// Per rank: idle time from the first start to the last end.
  std::vector<nanoseconds> span_idle;
  /// Per rank: most stage-microbatches held at the same time. A stage holds a
  /// microbatch from the start of F to the end of B or W.
  std::vector<int> peak_activations;
  /// Per stage: most versions alive at the same time, in any replica.
  std::vector<int> weight_versions;
  std::vector<int> max_staleness; ///< Per stage: largest staleness of a gradient.
  /// Per stage: mean staleness of gradients; 0 without gradients.
  std::vector<double> mean_staleness;

  std::vector<nanoseconds> idle() const; ///< Per rank: makespan - busy.
  /// Mean over ranks of idle / makespan; 0 if the makespan is 0.
  double bubble() const;
  /// Mean over ranks of idle / busy, where a rank that was never busy counts as 0.
  double bubble_ideal() const;
};

/// The sums of one rank over measured actions, added in the rank's order.
struct rank_sums {
  /// The sums of one stage that the rank hosts.
  struct stage_sums {
    int stage;
    int versions = 1;
    int stalest = 0;
    std::int64_t staleness = 0;
    std::int64_t gradients = 0;
  };

  void add(const measured_action& s);

  nanoseconds busy = 0;
  nanoseconds off_processor_time = 0; ///< Sum over actions, as in measured_action.
  nanoseconds first_start = -1;       ///< -1: nothing has run.
  nanoseconds last_end = 0;
  /// Stage-microbatches held now. The rank's scheduler copies the value from
  /// held_activations; add() does not change the value.
  int held = 0;
  /// Largest value of `held` so far, copied in the same way.
  int peak_held = 0;
  std::vector<stage_sums> stages;
};

/// Returns the measures of a run, from the sums of all ranks.
measures measures_of(const std::vector<rank_sums>& ranks, int stages);

} // namespace troupe
