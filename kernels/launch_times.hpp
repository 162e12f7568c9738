// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

namespace troupe {

/// What each work of a device has launched on a GPU, between two moments of its stream,
/// in the order of their launches. Whoever reads it waits until the run is over.
struct launch_times {
  struct launch {
    std::shared_ptr<void> begin, end; ///< As stream::moment() gives them.
    double host_seconds;              ///< That a thread took to launch it.
  };

  std::vector<launch> all;
};

} // namespace troupe
