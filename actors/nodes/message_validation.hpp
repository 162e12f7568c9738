// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/gpu_groups.hpp"
#include "messaging/wire/codec.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// Checks messages of other processes against the plan, before any actor handles a
// message.

namespace troupe {

/// The rules for messages between processes of a run, derived from the run's plan.
/// Capacities of buffers are computed once, in the constructor. Thread-safe.
class message_validation {
public:
  /// \pre plan->work
  explicit message_validation(std::shared_ptr<const run_plan> plan);

  /// Returns a sentence that says why no actor of this run can have sent the message to
  /// its receiver; empty if the message is valid. The rules cover the receiver, and the
  /// ranks, positions, microbatches and sizes of tensors that a message names. Some
  /// fields are not covered, such as the versions in headers of tensors.
  std::string validation_error(const wire::addressed_message& message) const;

  /// Capacity, in 4-byte values, of a buffer for a tensor of `bytes` bytes in the
  /// message. A stage has one capacity for activations, one for gradients and one for
  /// rows of experts, even if sizes differ between microbatches. So a stage may reuse a
  /// buffer, and few buffer sizes exist. The capacity for any other tensor is the
  /// tensor's size.
  /// \pre validation_error(message) is empty
  std::int64_t capacity_of(const wire::addressed_message& message,
                           std::int64_t bytes) const;

  /// Sets the groups of GPUs that exchange arrays directly. A message that stands for
  /// such an exchange (`is_call()` of its header or body) is valid only afterwards, and
  /// only for these groups. Called at most once, from any thread.
  void set_groups(const known_groups& groups);

private:
  struct validator;

  bool is_call(const mail::meeting_message& m, const collective_message& call) const;
  bool has_channel(position from, position to) const;

  /// Sizes in 4-byte values, for one shard of a stage; equal in all data replicas.
  struct shard_sizes {
    /// Capacity of a buffer for activations from the stage below; 0 in the first stage.
    std::int64_t capacity_below = 0;
    /// Capacity of a buffer for gradients from the stage above; 0 in the last stage.
    std::int64_t capacity_above = 0;
    /// Most values of rows to or from an expert, in one message; 0 without experts.
    std::int64_t most_rows = 0;
    /// Most values of an array in any other message of a meeting.
    std::int64_t most_array = 0;
  };

  const shard_sizes& sizes_at(position where) const {
    return stages_[static_cast<std::size_t>(
      (where.direction * plan_->dims.stages + where.stage) * plan_->mesh[axis::tensor]
      + where.tensor)];
  }

  std::shared_ptr<const run_plan> plan_;
  std::vector<shard_sizes> stages_; // in the order that `sizes_at` uses
  std::vector<exchanging_group> groups_;
  // True if `groups_` is complete, and never changes again.
  std::atomic<bool> knows_groups_ = false;
};

} // namespace troupe
