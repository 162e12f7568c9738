// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

namespace troupe {

/// Records the launches of each work of a device on a GPU, between two timestamps of
/// the stream, in launch order. A work whose launch failed has no record. A reader must
/// wait until the run has ended.
struct launch_times {
  struct launch {
    /// Timestamps before and after the work (stream::gpu_timestamp).
    std::shared_ptr<void> begin, end;
    double host_seconds; ///< Seconds that a thread took to launch the work.
  };

  std::vector<launch> launches;
};

} // namespace troupe
