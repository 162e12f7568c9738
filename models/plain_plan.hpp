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

/// Witness of a loop's updates. It may put other values in the place of those it sees;
/// the loop goes on with them. Buckets are those of a stage's layers.
class update_witness {
public:
  virtual ~update_witness() = default;

  /// The gradients of the update that makes `version` are summed.
  virtual void summed(int stage, int version, const std::vector<float*>& gradients) = 0;

  /// The update has made `version`.
  virtual void made(int stage, int version, const std::vector<float*>& parameters) = 0;
};

/// What a plain loop trains, and in which order of versions.
struct plain_plan {
  const network<float>& whole;
  std::vector<int>
    first_layers; ///< As `cut` returns them: stages have their own versions.
  const data_set& data;
  batching batches;
  int steps;
  int replicas = 1; ///< Equal contiguous shares of a batch, summed apart.
  /// Microbatches of each replica that an update covers; 0: the batch's.
  int update_every = 0;
  /// Sums n values of all replicas' arrays into the first; empty: in order.
  gradient_buckets::sum_function sum;
  /// What a layer of the network is made up of, where sums and norms go by such
  /// buckets; empty: each layer has one.
  std::function<std::vector<gradient_bucket>(std::size_t layer)> made_of;
  /// The version that the k-th microbatch of a replica reads on a stage; empty: the
  /// newest.
  std::function<int(int stage, int k)> reads;
  /// By stage, the order in which it sums the microbatches of a replica's batch; empty:
  /// all in increasing order. Stages of other orders are summed one order after
  /// another.
  std::vector<std::vector<int>> orders = {};
  optimizer_options optimizer;
  /// If there is one, gradients are summed over data replicas microbatch by microbatch:
  /// replicas r, r + directions, ... have theirs of one microbatch each in n values of
  /// arrays, and it leaves the sum in the first. Those of several microbatches are
  /// added then, and those of the directions at last.
  int directions = 1;
  gradient_buckets::sum_function sum_microbatch;
  weight_source weights;
  int threads = 1;
  processor on = {};                 ///< What computes.
  update_witness* witness = nullptr; ///< Null: nobody looks on.
  /// Called with the loss of each minibatch after its update.
  std::function<void(double loss)> progress;
};

} // namespace troupe
