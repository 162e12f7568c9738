// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_plan.hpp"
#include "experiments/options/options.hpp"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

/// The network that options name, with weights that were saved, cut into stages.
struct saved_network {
  inference_plan plan;
  std::string from;                     ///< The file or the checkpoint.
  std::vector<std::string> passed_over; ///< Why newer checkpoints are not that.
  std::vector<std::string> notes;       ///< On tensors and products.
  bool keeps_facts = true; ///< The checkpoint keeps data and options of its training.
};

/// On error says what is wrong, and what is allowed.
tl::expected<saved_network, std::string> open_saved_network(const options& o);

/// What users should know of the weights before these are used, a sentence each.
std::vector<std::string> warnings_of(const saved_network& network);

/// What runs where, for people: "gpt of 1234 parameters from FILE; 2 stages".
std::string description(const saved_network& of);

} // namespace troupe
