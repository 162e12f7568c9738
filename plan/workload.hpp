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
#include <utility>
#include <variant>
#include <vector>

// The work of a run: network, data and optimizer of a training, or the message sizes of
// a simulation.

namespace troupe {

/// Sizes of messages in a simulation, which has no tensors. All sizes in bytes are of
/// fp32 values.
struct simulated_sizes {
  double message = 0; ///< Bytes of an activation, and of an activation's gradient.
  /// Bytes of a stage's gradients, and of a stage's parameters, over all tensor shards.
  double gradient = 0;
  int buckets = 1; ///< Buckets of a stage, of equal size.
  double sum = 0;  ///< Bytes of one sum between tensor shards.
  /// Number of sums between tensor shards in each forward and in each backward.
  int sums = 2;
  double experts = 0; ///< Bytes of the rows that a stage sends to experts.
  /// Storage of tensors that stages send to each other and that tensor shards gather by
  /// sequence. Summed arrays and rows of experts are always fp32.
  precision stored = precision::fp32;

  /// Bytes of a tensor that is stored as `stored`.
  /// \param bytes of the tensor in fp32
  double stored_bytes(double bytes) const {
    return stored == precision::bf16 ? bytes / 2 : bytes;
  }
};

/// A state array of an optimizer. The source gives values of whole layers.
struct named_source {
  std::string name;
  weight_source values;
};

/// The state, besides weights, of a training that earlier batches have begun. Each
/// source gives values of whole layers, whatever tensor shards the earlier run had.
struct earlier_training {
  /// Older versions of the parameters: first the version before the newest.
  std::vector<weight_source> older;
  /// State arrays of the optimizer, in the optimizer's order; empty: all 0.
  std::vector<named_source> state;
  /// Number of updates of each layer of the network, over the earlier training; empty:
  /// no layer has been updated.
  std::vector<std::int64_t> updates;
};

/// The work of a run that computes.
struct training {
  network<float> whole;
  /// Networks that stages run instead of `whole`: one per tensor shard, or the network
  /// without experts. Empty: stages run `whole`.
  std::vector<network<float>> shards;
  expert_options experts; ///< Options of experts, if the network has experts.
  /// First layer of each stage, then the number of layers, as `cut` returns.
  std::vector<int> first_layers;
  std::shared_ptr<const data_set> data;
  std::int64_t batch; ///< Samples of a batch.
  optimizer_options optimizer;
  weight_source weights;
  bool from_values = false; ///< Weights come from a file, not from a seed.
  earlier_training earlier = {};
  /// Values of the options that decide the training's numbers, by name ("--lr"). Stored
  /// in checkpoints.
  std::map<std::string, std::string> options = {};
};

/// The work of a run: a training, or a simulation. True as a condition for a training,
/// to which `*` and `->` lead.
class run_work {
public:
  run_work(simulated_sizes sizes = {}) : kind_(sizes) {
    // nop
  }
  run_work(training work) : kind_(std::move(work)) {
    // nop
  }

  explicit operator bool() const { return std::holds_alternative<training>(kind_); }

  /// \pre the work is a training
  training& operator*() { return *std::get_if<training>(&kind_); }
  const training& operator*() const { return *std::get_if<training>(&kind_); }
  training* operator->() { return std::get_if<training>(&kind_); }
  const training* operator->() const { return std::get_if<training>(&kind_); }

  /// Sizes of messages in a simulation.
  /// \throws std::bad_variant_access if the work is a training
  simulated_sizes& simulated() { return std::get<simulated_sizes>(kind_); }
  const simulated_sizes& simulated() const { return std::get<simulated_sizes>(kind_); }

  /// Storage of the tensors that stages send.
  precision stored() const {
    return *this ? (**this).whole.options.stored : simulated().stored;
  }

private:
  std::variant<simulated_sizes, training> kind_;
};

} // namespace troupe
