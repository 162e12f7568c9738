// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_plan.hpp"
#include "experiments/options/options.hpp"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

/// The network that options name, with saved weights, cut into stages.
struct saved_network {
  inference_plan plan;
  std::string from;                     ///< Path of the file or the checkpoint.
  std::vector<std::string> passed_over; ///< Reasons why newer checkpoints were skipped.
  std::vector<std::string> notes;       ///< Sentences about tensors and bf16 products.
  /// False if a checkpoint does not record data and options of its training.
  bool keeps_facts = true;
};

/// Makes the network that options name, and opens the weights of --weights. The error
/// is one sentence with the mistake and the allowed values.
tl::expected<saved_network, std::string> open_saved_network(const options& o);

/// Warnings for the user before the weights are used: `notes`, skipped checkpoints and
/// missing facts, one sentence each.
std::vector<std::string> warnings_of(const saved_network& network);

/// One line for people: "gpt of 1234 parameters from FILE; 2 stages".
std::string description(const saved_network& network);

} // namespace troupe
