// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "messaging/mail/reports.hpp"
#include "messaging/position.hpp"
#include "messaging/record.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace troupe::mail {

// Contents of the messages about updates. Buffers are empty in a simulation that
// computes nothing.

/// Stage to optimizer shard: the gradients of a bucket are complete for this update.
struct bucket_ready {
  int direction;
  int bucket;
  buffer gradients;
};

/// Stage to optimizer shard: the stage's gradients, the buffers of the newest version
/// (`from`), and the buffers of the next version (`to`). The message's handles keep the
/// buffers alive.
struct update_request {
  measured_action measured; ///< The update, without times.
  std::int64_t samples;     ///< Samples that the gradients sum.
  std::vector<buffer> gradients;
  std::vector<buffer> from;
  std::vector<buffer> to; ///< May be equal to `from`.
  /// Saves the version that the update overwrites; may be empty. Runs on the device of
  /// the stage's rank, before any write to `to`.
  std::function<void()> save_previous = {};
};

/// Optimizer shard to stage: the next version is written. The start and the end are of
/// the update's last work.
struct updated {
  nanoseconds start;
  nanoseconds end;
  nanoseconds off_processor_time = 0; ///< As in measured_action.
  /// The shard's part of the update, without position and version; absent if the shard
  /// measures none.
  std::optional<update_part> part = {};
};

/// Optimizer shard to itself: the next version has reached the rank of `direction`.
struct version_there {
  int direction;
};

/// Optimizer shard to the first shard of a norm's group: sums of squares of the summed
/// gradients, one per parameter, in the model's order.
struct norm_part {
  position sender;
  std::int64_t samples;
  std::vector<double> squares;
  int update = 0; ///< Number of the update, counted from 1.
};

/// First optimizer shard of a norm's group to all shards of the group: the factor by
/// which this update's gradients are multiplied.
struct clip_by {
  double factor;
  int update; ///< Number of the update, counted from 1.
};

/// Optimizer shard to the shard at the other end of a tied matrix: summed gradients of
/// some of the matrix's values.
struct tied_part {
  int update;      ///< Number of the sender's update, counted from 1.
  position sender; ///< Position of the sending optimizer shard.
  /// True if the receiver is the head; false if the receiver is the embedding.
  bool to_head;
  std::int64_t first; ///< Index of the first value in the matrix.
  std::int64_t values;
  buffer payload;
};

/// Optimizer shard to parameter server: the gradients of one data replica's update. The
/// server applies a share of the gradients, and writes the same share of the next
/// version to `to`.
struct push {
  int data;             ///< The data replica.
  std::int64_t samples; ///< Samples that the gradients sum.
  double factor;        ///< Factor of clipping, by which the gradients are multiplied.
  std::vector<buffer> gradients;
  std::vector<buffer> to;
};

/// Parameter server to optimizer shard: the server's share of the next version is
/// written.
struct pulled {
  int server; ///< Index of the data replica on whose rank the server is.
};

/// Optimizer shard to the shard of another data replica, where replicas exchange
/// gradients by the user's own code.
struct user_message {
  int update; ///< Number of the update, counted from 0.
  int from;   ///< The sending data replica.
  std::vector<std::byte> bytes;
};

} // namespace troupe::mail
