// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The options that affect the numeric results of a training. A checkpoint records the
// values, and a resumed run is compared with the record.

#include "actors/checkpoints/checkpoint_manifest.hpp"
#include "experiments/options/options.hpp"
#include "kernels/bf16_block.hpp"
#include "plan/run_plan.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe {

/// Values of the options that affect the numeric results, by name: "--lr". Two keys are
/// no options: "clip of" and "TROUPE_BF16".
/// \param plan plan of one training, with the optimizer of its schedule
std::map<std::string, std::string> options_of_training(const options& o,
                                                       const run_plan& plan);

/// The end of a sentence about a checkpoint whose network has other options than this
/// run. Empty if the options that both maps have are equal, and --tied and
/// --shared-expert are each in both maps or in neither. Options of data, and options
/// that --change may name (option_catalog.hpp), are not compared. An empty
/// `recorded` gives an empty text.
std::string other_network(const std::map<std::string, std::string>& recorded,
                          const std::map<std::string, std::string>& now);

/// The end of a sentence about a checkpoint whose training differs from the resumed
/// run. If the networks differ: the first difference (other_network()). Else each
/// option that differs, with both values. Empty if nothing differs that must be equal.
/// Options that only one side has are not compared, except --tied and --shared-expert
/// if `recorded` has options. The data's identities are compared if both sides have
/// one. --steps is compared if both rates follow a cosine.
/// \param changes names that --change allows to differ
std::string resume_error(const training_facts& recorded, const training_facts& now,
                         const std::vector<std::string>& changes);

/// The warning about a checkpoint that records neither data nor options.
std::string without_facts(const std::string& checkpoint);

/// A note on a checkpoint in bf16 that does not record the path of the products; empty
/// for other checkpoints.
/// \param used the path of this run's CPUs
std::string without_bf16_path(const std::string& checkpoint,
                              const training_facts& recorded, bf16_path used);

} // namespace troupe
