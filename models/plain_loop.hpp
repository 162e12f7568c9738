// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/plain_plan.hpp"

#include <vector>

namespace troupe {

/// What a training leaves behind; buckets are laid out as the layers lay them out.
struct trained {
  std::vector<double> loss; ///< A minibatch each: the mean over predictions.
  std::vector<std::vector<float>> parameters; ///< A layer each, the newest version.
  std::vector<std::vector<float>>
    gradients; ///< Of the last minibatch, summed over samples.
};

/// Trains without actors, messages or a schedule: one microbatch after another, forward
/// and backward. With `reads` it is the formula of an asynchronous schedule; without,
/// the definition of what a flush schedule must compute. The gradients of a tied matrix
/// are added when each is summed over microbatches and replicas: the head's, then the
/// embedding's. \pre of a tied network clipping is by one norm of all stages
trained train_plainly(const plain_plan& plan);

} // namespace troupe
