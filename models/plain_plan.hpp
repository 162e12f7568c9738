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

/// Observes the updates of a plain loop, on the thread of the loop. A witness may
/// overwrite the arrays that the loop passes, until the call returns; the loop then
/// continues with the new values. Each call gets one bucket for each layer of the
/// stage.
class update_witness {
public:
  virtual ~update_witness() = default;

  /// Called when the gradients of the update that makes `version` have been summed over
  /// samples, replicas and both copies of a tied matrix, before clipping. Versions
  /// count from 0, the initial weights.
  virtual void summed(int stage, int version, const std::vector<float*>& gradients) = 0;

  /// Called when the update has made `version`.
  virtual void updated(int stage, int version,
                       const std::vector<float*>& parameters) = 0;
};

/// The inputs of a plain loop: network, data, optimizer, and the order of versions.
/// `whole`, `data` and `witness` outlive the loop.
struct plain_plan {
  const network<float>& whole;
  std::vector<int>
    /// First layer of each stage, then the number of layers, as `cut` returns.
    first_layers;
  const data_set& data;
  batching batches;
  int steps; ///< Number of batches.
  /// Number of pipelines: data replicas times directions. Each pipeline (a replica
  /// here) sums an equal contiguous share of a batch's microbatches; the number of
  /// replicas divides the number of microbatches.
  int replicas = 1;
  /// Microbatches of each replica that an update covers; 0: all of the replica's batch.
  int update_every = 0;
  /// Sums n values of all replicas' arrays into the first array; empty: sums in order.
  /// Not used with `sum_microbatch`.
  gradient_buckets::sum_function sum;
  /// Returns the buckets of a layer, in which gradients are summed and measured; empty:
  /// each layer has one bucket.
  std::function<std::vector<gradient_bucket>(std::size_t layer)> made_of;
  /// The version that the k-th microbatch of a replica reads on a stage, with k counted
  /// over the whole run from 0. Empty: the newest version. Versions must not decrease
  /// with k, because an update drops older versions.
  std::function<int(int stage, int k)> reads;
  /// By stage, the order in which the stage sums a replica's microbatches of one
  /// update, as indexes from 0 within the update. Empty: all stages sum in increasing
  /// order. If stages have different orders, the loop computes the minibatch once for
  /// each order.
  std::vector<std::vector<int>> orders = {};
  optimizer_options optimizer;
  /// Directions of the schedule: replica r belongs to direction r mod `directions`.
  int directions = 1;
  /// If not empty, sums the gradients of one microbatch over the replicas of a
  /// direction. The function receives one array of n values per replica, and leaves the
  /// sum in the first array. The loop then adds the sums of several microbatches, and
  /// last the sums of the directions.
  gradient_buckets::sum_function sum_microbatch;
  weight_source weights;
  int threads = 1;                   ///< Compute threads, if the CPU computes.
  processor compute_processor = {};  ///< The processor that computes.
  update_witness* witness = nullptr; ///< May be null.
  /// Called with the loss of each minibatch, after the update; may be empty.
  std::function<void(double loss)> progress;
};

} // namespace troupe
