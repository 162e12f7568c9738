// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/training_state.hpp"
#include "actors/run/run_result.hpp"
#include "experiments/options/checkpoint_options.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// The end of a sentence about a failed run that can resume: the newest checkpoint of
/// this command, or the one from which it resumed. Empty if the command names no
/// folder.
std::string last_checkpoint(const checkpoint_options& o);

/// The state from which a run that has lost nodes starts again.
struct restart_point {
  std::shared_ptr<const training_state> from; ///< Null: the state of the first start.
  std::string
    description; ///< The state in words; empty: before the training's first step.
  std::vector<std::string> passed_over; ///< Reasons why newer checkpoints were skipped.
};

/// The state after the last step that other nodes have kept, or a newer checkpoint.
/// \param first the run's plan at the first start
/// \param kept by other nodes, or the state with which the run began before; may be
/// null
/// \param folder of checkpoints; empty: there are none
restart_point find_restart_point(const run_result& lost, const run_plan& first,
                                 std::shared_ptr<const training_state> kept,
                                 const std::string& folder);

} // namespace troupe
