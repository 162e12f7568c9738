// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/rule_context.hpp"
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

/// The bytes of each tensor that follows a message: first of wire::buffers_of, then of
/// wire::arrays_of. 0 for the tensor of a call, a message that stands for a direct
/// exchange between GPUs. Sizes follow from the message and from the plan, so sender
/// and receiver compute equal sizes.
/// \pre the positions that the message names exist in the plan
byte_counts tensor_bytes(const run_plan& plan, const wire::addressed_message& message);

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
  /// \pre exists(*plan_, message.to)
  rule_context context_of(const wire::addressed_message& message) const;

  std::shared_ptr<const run_plan> plan_;
  std::vector<shard_sizes> stages_; // by direction, stage and tensor shard
  std::vector<exchanging_group> groups_;
  // True if `groups_` is complete, and never changes again.
  std::atomic<bool> knows_groups_ = false;
};

} // namespace troupe
