// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/space_allocator.hpp"
#include "messaging/record.hpp"
#include "models/slices_by_length.hpp"
#include "plan/run_plan.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Values of some layers, one bucket each, in memory that the plan's kernels can
/// access.
using bucket_values = std::vector<vector_in<float>>;

/// One stage of one direction and data replica in a replay, with its position in the
/// recorded actions.
struct replayed_stage {
  /// Begins with the plan's initial parameters, and with the stage's actions in the
  /// record.
  /// \pre plan.work
  replayed_stage(const run_plan& plan, position where, const record& ran);

  position where;
  slices_by_length<float> slices;
  std::vector<measured_action> todo;
  std::size_t next = 0;
  std::map<int, bucket_values> versions;
  /// Sum of gradients since the last update. Keeps the last update's gradients until
  /// the next backward or weight gradient.
  bucket_values sum;
  /// Gradients of each microbatch since the last update, with ZeRO 2 and 3; else empty.
  std::vector<bucket_values> by_microbatch;
  int summed = 0;           ///< Number of microbatches in the sum.
  std::int64_t samples = 0; ///< Number of samples in the sum.

  /// The stage's layers for sequences of `length` tokens; 0: the network's own length.
  const slice<float>& layers(std::int64_t length = 0) const {
    return slices.at_length(length);
  }

  bool finished() const { return next == todo.size(); }
  /// The current action.
  /// \pre !finished()
  const measured_action& now() const { return todo[next]; }

  /// The parameters that the current action reads. The array of a version stays while
  /// actions that read the version remain. Where a backward reads the newest version,
  /// as with weights::latest, all versions have one array in turn, as in a run.
  /// \pre !finished(), and the current action is not an update
  /// \throws std::logic_error if that version does not exist
  const bucket_values& parameters();

  /// Moves to the next action, and drops the versions that no remaining action reads;
  /// the newest version stays.
  /// \pre !finished()
  void advance();

  /// Moves to the next action, and begins a new sum with the next backward or weight
  /// gradient. To be called when the current action, an update, is done.
  void end_update();

  /// Returns the reason why the replay of this stage is incomplete, when no stage can
  /// continue. Reasons: a missing input, an update that another stage never reaches,
  /// gradients without an update. Empty if the replay is complete.
  std::string error() const;

private:
  bool keeps_versions_;
  bucket_values newest_;        // of one array for all versions
  std::optional<int> in_array_; // version of `newest_`
};

} // namespace troupe
