// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/saved_training.hpp"
#include "actors/run/run_result.hpp"
#include "experiments/options/checkpoint_options.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// Where a run that has failed can go on from, in words: a checkpoint of this command,
/// or the one that it went on from; empty if it has neither.
std::string last_checkpoint(const checkpoint_options& o);

/// What a run that has lost nodes goes on from.
struct new_beginning {
  std::shared_ptr<const saved_training> from; ///< Null: where it began at first.
  std::string behind; ///< That in words; empty: the first step of the training.
  std::vector<std::string> passed_over; ///< Why newer checkpoints are not that.
};

/// The last step that other nodes have kept, or a checkpoint that is newer.
/// \param first the run's plan at first
/// \param kept by other nodes, or what the run began with before; may be null
/// \param folder of checkpoints; empty: there are none
new_beginning beginning_behind(const run_result& lost, const run_plan& first,
                               std::shared_ptr<const saved_training> kept,
                               const std::string& folder);

} // namespace troupe
