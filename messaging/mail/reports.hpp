// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cross_entropy.hpp"
#include "messaging/position.hpp"
#include "messaging/record.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::mail {

// Messages to the recorder: measured actions, sums, losses, versions and expert loads.

/// Scheduler to recorder: the rank's measured actions since the last such message, in
/// order. The message has only the actions that the run keeps or reports.
struct samples {
  int rank;
  std::vector<measured_action> actions;
};

/// Scheduler to recorder: the rank's sums since the start of the run.
struct sums {
  int rank;
  rank_sums totals;
};

/// Last stage to recorder: a microbatch's loss. The stage sends the message at the
/// update that covers the microbatch.
struct microbatch_loss {
  /// Index among the microbatches of all data replicas, counted over the run from 0.
  int microbatch;
  std::int64_t samples;
  loss_sum sum;
  /// End of the microbatch's forward on the last stage, on the run's clock.
  nanoseconds ended = 0;
};

/// Stage to recorder, if the run keeps versions: copies of the parameters that an
/// update made, and of the gradients that the update used.
struct version_made {
  position where;
  int version;
  std::vector<std::vector<float>> parameters;
  std::vector<std::vector<float>> gradients;
};

/// Stage to recorder: the part of an update that the stage's optimizer shard made.
/// measures_gradient() says which stages report.
struct update_part {
  position where;
  int version;          ///< The version that the update made, from 1.
  std::int64_t samples; ///< Samples of the update, over all data replicas.
  /// Sum of squares of the summed gradients that only this shard measures.
  double squares;
  double rate; ///< The learning rate of the update.
};

/// Stage to recorder, if the network has experts: the numbers of a microbatch's tokens
/// for each expert of a layer. The stage sends the message at the update that covers
/// the microbatch.
struct expert_load {
  /// Index among the microbatches of all data replicas, counted over the run from 0.
  int microbatch;
  std::size_t of_layer;           ///< Index of the layer in the network.
  std::vector<std::int64_t> rows; ///< Rows for each expert.
  /// Number of choices that were dropped because the expert was full.
  std::int64_t dropped;
};

} // namespace troupe::mail
