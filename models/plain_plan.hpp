// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/processor.hpp"
#include "models/batching.hpp"
#include "models/data/data_set.hpp"
#include "models/gradient_buckets.hpp"
#include "models/optimizer.hpp"
#include "models/weights.hpp"

#include <functional>
#include <vector>

namespace troupe {

/// Witness of a loop's updates. A witness may overwrite the values that the loop shows;
/// the loop then continues with the new values. Buckets are the buckets of a stage's
/// layers.
class update_witness {
public:
  virtual ~update_witness() = default;

  /// The gradients of the update that makes `version` have been summed.
  virtual void summed(int stage, int version, const std::vector<float*>& gradients) = 0;

  /// The update has made `version`.
  virtual void updated(int stage, int version,
                       const std::vector<float*>& parameters) = 0;
};

/// The inputs of a plain loop: network, data, optimizer, and the order of versions.
struct plain_plan {
  const network<float>& whole;
  std::vector<int>
    /// First layer of each stage, then the number of layers, as `cut` returns.
    first_layers;
  const data_set& data;
  batching batches;
  int steps;
  int replicas = 1; ///< Data replicas: each sums an equal contiguous share of a batch.
  /// Microbatches of each replica that an update covers; 0: as many as the batch has.
  int update_every = 0;
  /// Sums n values of all replicas' arrays into the first array; empty: sums in order.
  gradient_buckets::sum_function sum;
  /// The buckets of a layer of the network, where sums and norms go by such buckets;
  /// empty: each layer has one bucket.
  std::function<std::vector<gradient_bucket>(std::size_t layer)> made_of;
  /// The version that the k-th microbatch of a replica reads on a stage; empty: the
  /// newest.
  std::function<int(int stage, int k)> reads;
  /// By stage, the order in which the stage sums the microbatches of a replica's batch;
  /// empty: all stages sum in increasing order. Stages with different orders are summed
  /// one order after another.
  std::vector<std::vector<int>> orders = {};
  optimizer_options optimizer;
  /// If not empty, gradients are summed over data replicas microbatch by microbatch.
  /// Replicas r, r + directions, ... pass arrays of n values with the gradients of one
  /// microbatch each; the function leaves the sum in the first array. Then the sums of
  /// several microbatches are added, and last the sums of the directions.
  int directions = 1;
  gradient_buckets::sum_function sum_microbatch;
  weight_source weights;
  int threads = 1;
  processor compute_processor = {};  ///< The processor that computes.
  update_witness* witness = nullptr; ///< Null: no witness.
  /// Called with the loss of each minibatch, after the update.
  std::function<void(double loss)> progress;
};

} // namespace troupe
