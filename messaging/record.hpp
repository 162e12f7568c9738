// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/device.hpp"
#include "schedules/timeline.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace troupe {

/// Meetings that begin when a part of an action has ended, as flags. The rank may have
/// to wait for them.
enum part_end : std::uint8_t {
  nothing = 0,
  shards_meet = 1,    ///< Tensor shards sum or gather.
  layer_ends = 2,     ///< Data replicas share a layer out: the part was the last on it.
  norm_measured = 4,  ///< It measured what the norm of an update is made of.
  version_made = 8,   ///< It made this data replica's share of a version.
  experts_asked = 16, ///< Rows have gone to the experts of a layer.
  tie_given = 32,     ///< Gradients of a tied matrix have gone to its other end.
};

/// An action as it ran.
struct measured_action {
  action what;
  nanoseconds start = 0;
  nanoseconds end = 0;
  int version = 0;        ///< That F, B, I or W read, or that U made.
  int versions_alive = 1; ///< On its stage, when it had ended.
  bool part = false;      ///< Of the action; others of it follow.
  // Of an update: what it covers, and how many versions its gradients lag behind.
  int gradients = 0;
  int stalest = 0;
  std::int64_t staleness = 0; ///< Summed over gradients.
  int expert = -1; ///< That ran this part, in the network's list; -1: the stage.
  std::uint8_t ends_in = nothing; ///< Meetings.
};

/// An action as it ran, or a part of one, and the rank that ran it.
struct ranked_action {
  int rank;
  measured_action what;
};

/// What ranks have run since somebody asked last.
struct recent_actions {
  std::vector<ranked_action> ran; ///< In the order in which it was told.
  nanoseconds dropped_to = 0;     ///< The last end of what was too much to keep; or 0.
};

/// What every rank ran, in its order.
using record = std::vector<std::vector<measured_action>>;

/// How tokens fell to the experts of each layer: step by step, or in a long run over so
/// many steps that there are no more than most_entries.
struct expert_loads {
  struct step {
    std::vector<std::int64_t> rows; ///< Of each expert, over all replicas.
    std::int64_t dropped = 0;       ///< Choices that found their expert full.

    void add(const step& other);
  };

  void add(int batch, std::size_t layer, const std::vector<std::int64_t>& rows,
           std::int64_t dropped);
  void halve();

  std::map<std::size_t, std::vector<step>> of; ///< By layer of the network.
  int every = 1;                               ///< Steps that an entry sums.
};

/// The actions of a record and when they ran.
timeline timeline_of(const record& ran);

/// What a run says of itself; arrays a rank or a stage, as results.json has them.
struct measures {
  nanoseconds makespan = 0;           ///< From the start of the run to the last end.
  std::vector<nanoseconds> busy;      ///< A rank.
  std::vector<nanoseconds> span_idle; ///< A rank, between its first start and last end.
  std::vector<int>
    peak_activations; ///< A rank: from the start of F to the end of B or W.
  std::vector<int> weight_versions;   ///< A stage: most alive at once, over replicas.
  std::vector<int> max_staleness;     ///< A stage.
  std::vector<double> mean_staleness; ///< A stage: over gradients.

  std::vector<nanoseconds> idle() const; ///< A rank: makespan - busy.
  double bubble() const;                 ///< Mean of idle / makespan.
  double bubble_ideal() const;           ///< Mean of idle / busy.
};

/// The sums of one rank, added up sample by sample, in their order.
struct rank_sums {
  /// What a rank knows of a stage it hosts.
  struct stage_sums {
    int stage;
    int versions = 1;
    int stalest = 0;
    std::int64_t staleness = 0;
    std::int64_t gradients = 0;
  };

  void add(const measured_action& s);

  nanoseconds busy = 0;
  nanoseconds first_start = -1; ///< -1: nothing ran.
  nanoseconds last_end = 0;
  int held = 0;      ///< By held_activations, not by add().
  int peak_held = 0; ///< Likewise.
  std::vector<stage_sums> stages;
};

/// The measures of a run from the sums of its ranks.
measures measures_of(const std::vector<rank_sums>& ranks, int stages);

} // namespace troupe
