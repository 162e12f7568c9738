// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/receivers.hpp"
#include "messaging/wire/codec.hpp"
#include "plan/gpu_groups.hpp"
#include "plan/run_plan.hpp"

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

// Rules for messages of other processes. Each message type has these static functions,
// side by side, in message_rules.hpp or meeting_rules.hpp:
//
//   error(context, message)            a sentence about an invalid message; otherwise
//                                      empty (message_validation)
//   sizes(plan, message)               the bytes of each tensor; only for types with
//                                      tensors
//   capacity(context, message, bytes)  the capacity of a tensor's buffer; only if that
//                                      is not the tensor's size

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

/// The receiver of a message, and the facts that rules compare messages with.
struct rule_context {
  const run_plan& plan;
  /// Sizes of the stage at the receiver's position; zeros if there is no such stage.
  const shard_sizes& sizes;
  const wire::address& to;
  /// Groups of GPUs that exchange arrays directly; empty until the groups are known.
  std::span<const exchanging_group> groups;
};

/// The bytes of each tensor of a message.
using byte_counts = std::vector<std::int64_t>;

inline constexpr std::int64_t value_bytes = sizeof(float);

template <class Message, class... Listed>
concept is_one_of = (std::same_as<Message, Listed> || ...);

/// The rules of several structs.
template <class... Rules>
struct joined_rules : Rules... {
  using Rules::capacity...;
  using Rules::error...;
  using Rules::sizes...;
};

inline std::string unless(bool is_valid, const char* error) {
  return is_valid ? "" : std::string{"it sent "} + error;
}

inline bool is_stage(const run_plan& plan, position where) {
  return exists(plan, {.actor = wire::address::kind::stage, .where = where});
}

inline bool is_rank(const run_plan& plan, int rank) {
  return rank >= 0 && rank < plan.ranks();
}

/// True if an action belongs to the run.
inline bool is_action(const run_plan& plan, const action& a) {
  return a.direction >= 0 && a.direction < plan.directions() && a.stage >= 0
         && a.stage < plan.dims.stages && a.microbatch >= 0
         && a.microbatch < plan.dims.total();
}

} // namespace troupe
