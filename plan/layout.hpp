// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/layer.hpp"

#include <cstddef>
#include <memory>

// Buckets: how the parameters of a layer are laid out in arrays, and which data
// replicas sum an array.

namespace troupe {

/// A bucket: parameters in one contiguous array. A layer has one bucket, and one more
/// bucket for each expert. A stage has the buckets of experts that the stage's data
/// replica hosts.
struct layer_bucket {
  std::size_t of_layer; ///< Index of the layer in the whole network.
  /// Index in the network's list of experts; -1: the layer's own parameters.
  int expert;
  std::shared_ptr<const layer<float>> owner;
};

/// The data replicas that sum one bucket together: `count` replicas, `stride` apart.
struct bucket_group {
  /// Index within the group of the data replica that groups_of() was asked
  /// for.
  int index;
  int count;
  int stride;
};

} // namespace troupe
