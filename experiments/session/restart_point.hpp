// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/checkpoint_options.hpp"
#include "actors/checkpoints/training_state.hpp"
#include "actors/run/run_result.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// The end of a sentence about a failed run that can resume: the newest checkpoint in
/// the folder of --checkpoint, else the newest of --resume. Checkpoints are not read.
/// Without any checkpoint: the text says so if --checkpoint names a folder, else the
/// text is empty. The reason follows if a folder cannot be read.
std::string last_checkpoint(const checkpoint_options& o);

/// The state from which a run that has lost nodes starts again.
struct restart_point {
  /// Null for the state of the first start.
  std::shared_ptr<const training_state> from;
  /// The state in words; empty: before the training's first step.
  std::string description;
  std::vector<std::string> passed_over; ///< Reasons why newer checkpoints were skipped.
};

/// Finds the state for a new start: `kept`, or a newer checkpoint that leaves at least
/// one step. If there is neither, the result is the state of the first start.
/// \param lost result of the last start
/// \param first the run's plan at the first start
/// \param kept the state that other nodes have kept after this loss, else after an
/// earlier loss of the run; may be null
/// \param folder of checkpoints; empty: there are none
restart_point find_restart_point(const run_result& lost, const run_plan& first,
                                 std::shared_ptr<const training_state> kept,
                                 const std::string& folder);

} // namespace troupe
