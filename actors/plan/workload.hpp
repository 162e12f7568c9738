// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/bf16.hpp"
#include "models/data/data_set.hpp"
#include "models/optimizer.hpp"
#include "models/slice.hpp"
#include "models/weights.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// What actions send where nothing is computed. Bytes are those of fp32.
struct simulated_sizes {
  double message = 0;  ///< Bytes of an activation, and of its gradient.
  double gradient = 0; ///< Bytes of a stage's gradients, and of its parameters.
  int buckets = 1;     ///< Of a stage, of equal size.
  double sum = 0;      ///< Bytes that tensor shards sum at once.
  int sums = 2;        ///< Of tensor shards in a forward, and in a backward.
  double experts = 0;  ///< Bytes of the rows that a stage sends its experts.
  /// Of what stages send each other and what tensor shards gather by sequence. All
  /// that is summed is fp32, and so are the rows of experts.
  precision stored = precision::fp32;

  /// Bytes of what is stored so. \param bytes of fp32
  double stored_bytes(double bytes) const {
    return stored == precision::bf16 ? bytes / 2 : bytes;
  }
};

/// What a run goes on from besides its first weights, if batches came before it.
/// Sources give what they gave of a whole network, however that was shared out.
struct earlier_training {
  std::vector<weight_source> older;   ///< Versions: the last but one, that before it..
  std::vector<weight_source> moments; ///< Of the optimizer, by number; empty: all 0.
  std::vector<std::int64_t> updates;  ///< Of each layer; empty: none.
};

/// What the actors compute; absent from a simulation.
struct training {
  network<float> whole;
  /// Networks that stages run instead of `whole`: one per tensor shard, or the one
  /// without experts. Empty: stages run `whole`.
  std::vector<network<float>> shards;
  expert_options experts;        ///< Of a network with experts.
  std::vector<int> first_layers; ///< As `cut` returns them.
  std::shared_ptr<const data_set> data;
  std::int64_t batch; ///< Samples.
  optimizer_options optimizer;
  weight_source weights;
  bool from_values = false; ///< Weights are those of a file, and not of a seed.
  earlier_training earlier = {};
  /// Values of the options that decide its numbers, for its checkpoints: "--lr".
  std::map<std::string, std::string> options = {};
};

} // namespace troupe
