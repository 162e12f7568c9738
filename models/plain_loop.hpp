// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Training in a plain loop: the definition that pipelines are compared with.

#include "models/plain_plan.hpp"

#include <vector>

namespace troupe {

/// The result of a training; buckets have the layout that the layers give.
struct trained {
  /// One value per minibatch: the mean over predictions, in nats.
  std::vector<double> loss;
  std::vector<std::vector<float>> parameters; ///< A bucket a layer, newest version.
  std::vector<std::vector<float>>
    gradients; ///< Gradients of the last minibatch, summed over samples.
};

/// Trains without actors, messages or a schedule: one microbatch after another, forward
/// and backward. With `reads` the loop is the formula of an asynchronous schedule.
/// Without `reads` the loop is the definition of a flush schedule's result. The
/// gradients of a tied matrix are added after each copy's gradient is summed over
/// microbatches and replicas: the head's, then the embedding's.
/// \pre of a tied network clipping is by one norm of all stages
trained train_plainly(const plain_plan& plan);

} // namespace troupe
