// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/layer.hpp"

#include <cstddef>
#include <memory>

namespace troupe {

/// A bucket: parameters of a layer in one array, its own or those of one expert.
struct layer_bucket {
  std::size_t of_layer; ///< Counted over the whole network.
  int expert;           ///< In the network's list; -1: the layer's own parameters.
  std::shared_ptr<const layer<float>> what;
};

/// The data replicas that sum one bucket together: `count` of them, `stride` apart.
struct bucket_group {
  int index; ///< Of the data replica that asks, within the group.
  int count;
  int stride;
};

} // namespace troupe
