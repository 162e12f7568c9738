// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "messaging/chunks.hpp"

#include <cstdint>

namespace troupe {

/// A message of one rank to another in a collective: values, or a call. A call
/// announces a collective whose values GPUs exchange themselves.
struct collective_message {
  static constexpr int no_call = -1;

  int instance; ///< Number of the collective; all members use the same number.
  /// Round of the collective: in a round, a rank sends at most one message to each
  /// rank.
  int round;
  int from;          ///< Sending rank.
  int to;            ///< Receiving rank.
  chunk_range range; ///< Chunks of the sender's array; empty in a call.
  /// Number of values in these chunks, at least 1. In a call: the number of values that
  /// the sender's GPU sends to the receiver's GPU; may be 0.
  std::int64_t values;
  /// A copy of the values, in order, in the codec of the collective; empty in a call,
  /// and where nothing is computed.
  buffer payload;
  /// Bytes of the payload, which a simulation counts too. In a call: bytes that GPUs
  /// send.
  std::int64_t bytes = 0;
  /// In a call: the number of collectives that the sender has begun earlier in the same
  /// group of GPUs (group_calls.hpp). In other messages: `no_call`.
  int call = no_call;

  bool is_call() const { return call != no_call; }
};

} // namespace troupe
