// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cross_entropy.hpp"
#include "messaging/position.hpp"
#include "messaging/record.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::mail {

// What the recorder hears.

/// Scheduler: its rank's next measured actions, in order, if they are kept.
struct samples {
  int rank;
  std::vector<measured_action> what;
};

/// Scheduler: its rank's sums so far.
struct sums {
  int rank;
  rank_sums what;
};

/// Last stage, at the update that covers a microbatch: the microbatch's loss.
struct microbatch_loss {
  int microbatch;
  std::int64_t samples;
  loss_sum sum;
  nanoseconds ended = 0; ///< Its forward there, on the run's clock.
};

/// Stage, if versions are kept: copies of what an update made, and of the gradients
/// that it was of.
struct version_made {
  position where;
  int version;
  std::vector<std::vector<float>> parameters;
  std::vector<std::vector<float>> gradients;
};

/// Stage, likewise: how a microbatch's tokens fell to the experts of a layer.
struct expert_load {
  int microbatch;
  std::size_t of_layer;
  std::vector<std::int64_t> rows; ///< Of each expert.
  std::int64_t dropped;           ///< Choices that found their expert full.
};

} // namespace troupe::mail
