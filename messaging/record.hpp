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
/// have to wait for such a meeting.
enum part_end : std::uint8_t {
  nothing = 0,
  shards_meet = 1,    ///< Tensor shards sum or gather.
  layer_ends = 2,     ///< The part was the last on a layer shared out.
  norm_measured = 4,  ///< Squares for the norm of an update were computed.
  version_made = 8,   ///< The part made this data replica's share of a version.
  experts_asked = 16, ///< Rows have been sent to the experts of a layer.
  tie_given = 32,     ///< Gradients of a tied matrix have been sent.
};

/// An action that has run, with times on the run's clock.
struct measured_action {
  troupe::action action;
  nanoseconds start = 0;
  nanoseconds end = 0;
  int version = 0;        ///< Version that F, B, I or W read, or that U made.
  int versions_alive = 1; ///< Versions of the stage at the end of the action.
  bool part = false;      ///< A part of the action; other parts follow.
  // Only in an update: the number of gradients that the update covers, and the largest
  // staleness of one gradient.
  int gradients = 0;
  int stalest = 0;
  std::int64_t staleness = 0; ///< Sum over the gradients.
  /// Index of the expert that ran the part; -1: the stage.
  int expert = -1;
  std::uint8_t ends_in = nothing; ///< Flags of part_end.
};

/// An action that has run, or a part of one, and the rank that ran it.
struct ranked_action {
  int rank;
  measured_action measured;
};

/// The actions that ranks have run since the last request.
struct recent_actions {
  std::vector<ranked_action> ran; ///< Actions in the order of reports.
  nanoseconds dropped_to = 0;     ///< Latest end of a dropped action; or 0.
};

/// The actions of every rank, in the rank's order.
using record = std::vector<std::vector<measured_action>>;

/// The numbers of tokens for the experts of each layer, one entry per step. In a long
/// run an entry covers several steps, so that there are no more than most_entries.
struct expert_loads {
  struct step {
    std::vector<std::int64_t> rows; ///< Rows of each expert, over all replicas.
    std::int64_t dropped = 0;       ///< Choices whose expert was full.

    void add(const step& addend);
  };

  void add(int batch, std::size_t layer, const std::vector<std::int64_t>& rows,
           std::int64_t dropped);
  void halve();

  /// Entries by index of the layer in the network.
  std::map<std::size_t, std::vector<step>> by_layer;
  int every = 1; ///< Steps that an entry sums.
};

/// The actions of a record, with times.
timeline timeline_of(const record& ran);

/// The measures of a run. Arrays have one entry a rank or a stage, as in results.json.
struct measures {
  /// Time from the start of the run to the last action's end.
  nanoseconds makespan = 0;
  std::vector<nanoseconds> busy; ///< Per rank: sum of the durations of actions.
  /// Per rank: idle time from the first start to the last end.
  std::vector<nanoseconds> span_idle;
  /// Per rank: most stage-microbatches held at once. A stage holds a microbatch from
  /// the start of F to the end of B or W.
  std::vector<int> peak_activations;
  /// Per stage: most versions alive at once in any replica.
  std::vector<int> weight_versions;
  std::vector<int> max_staleness;     ///< Per stage: largest staleness of a gradient.
  std::vector<double> mean_staleness; ///< Per stage: mean over gradients.

  std::vector<nanoseconds> idle() const; ///< Per rank: makespan - busy.
  double bubble() const;                 ///< Mean of idle / makespan.
  double bubble_ideal() const;           ///< Mean of idle / busy.
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
  nanoseconds first_start = -1; ///< -1: nothing has run.
  nanoseconds last_end = 0;
  int held = 0;      ///< Set by held_activations, not by add().
  int peak_held = 0; ///< Set by held_activations.
  std::vector<stage_sums> stages;
};

/// The measures of a run, from the sums of all ranks.
measures measures_of(const std::vector<rank_sums>& ranks, int stages);

} // namespace troupe
