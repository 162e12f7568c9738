// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "messaging/position.hpp"
#include "messaging/record.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace troupe::mail {

// What letters about updates say. Buffers are empty where nothing is computed.

/// Stage to optimizer shard: a bucket's gradients of this update are complete.
struct bucket_ready {
  int direction;
  int bucket;
  buffer gradients;
};

/// Stage to optimizer shard: its gradients, and where the next version belongs. The
/// handles keep the buffers.
struct update_request {
  measured_action what; ///< The update, without its times.
  std::int64_t samples; ///< Summed in the gradients.
  std::vector<buffer> gradients;
  std::vector<buffer> from;
  std::vector<buffer> to; ///< May be `from`.
  /// Runs on the stage's device before anything is written to `to`; may be empty.
  std::function<void()> put_aside = {};
};

/// Optimizer shard to stage: the next version is written; when its last work ran.
struct updated {
  nanoseconds start;
  nanoseconds end;
};

/// Optimizer shard to itself: the next version has reached the rank of a direction.
struct version_there {
  int direction;
};

/// Optimizer shard to the first of those whose gradients one norm covers: sums of
/// squares of the summed gradients, one per parameter, in the model's order.
struct norm_part {
  position of;
  std::int64_t samples;
  std::vector<double> squares;
  int update = 0; ///< Counted from 1.
};

/// That first one to all of them: what multiplies the gradients of this update.
struct clip_by {
  double factor;
  int update; ///< Counted from 1.
};

/// Optimizer shard to the one at the other end of a tied matrix: summed gradients of
/// some of the matrix's values.
struct tied_part {
  int update;   ///< Of the sender, counted from 1.
  position of;  ///< The sender.
  bool to_head; ///< Else to the embedding.
  std::int64_t first;
  std::int64_t values;
  buffer payload;
};

/// Optimizer shard to parameter server: the gradients of one data replica's update. The
/// server applies its share, and writes its share of the next version.
struct push {
  int data;             ///< The data replica.
  std::int64_t samples; ///< Summed in the gradients.
  double factor;        ///< Of clipping.
  std::vector<buffer> gradients;
  std::vector<buffer> to;
};

/// Parameter server to optimizer shard: its share of the next version is written.
struct pulled {
  int server;
};

/// Optimizer shard to that of another data replica, where these exchange gradients in a
/// way of the user's own.
struct own_letter {
  int update; ///< Counted from 0.
  int from;   ///< The data replica.
  std::vector<std::byte> what;
};

} // namespace troupe::mail
