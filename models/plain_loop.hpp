// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Training in a plain loop: the definition that pipelines are compared with.

#include "models/plain_plan.hpp"

#include <vector>

namespace troupe {

/// The result of a training; buckets have the layout that the layers give.
struct trained {
  /// One value per minibatch: the mean over predictions, in nats. Each sample has equal
  /// weight, at any length.
  std::vector<double> loss;
  /// One bucket for each layer, of the newest version.
  std::vector<std::vector<float>> parameters;
  std::vector<std::vector<float>>
    gradients; ///< Of the last minibatch, summed over samples, not clipped.
};

/// Trains without actors, messages or a schedule: one microbatch after another, forward
/// and backward. With `plan.reads` the loop defines the result of an asynchronous
/// schedule. Without `plan.reads` the loop defines the result of a flush schedule. The
/// gradients of a tied matrix are added after each copy's gradient is summed over
/// microbatches and replicas: the head's plus the embedding's.
/// \pre a tied network is not clipped by the norm of each stage
trained train_plainly(const plain_plan& plan);

} // namespace troupe
