// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "messaging/chunks.hpp"

#include <cstdint>

namespace troupe {

/// What one rank sends another for a collective: values, or a call.
struct collective_message {
  static constexpr int no_call = -1;

  int instance;        ///< Which collective: its members agree on the number.
  int round;           ///< Of the collective; a rank sends another one message a round.
  int from;            ///< Rank.
  int to;              ///< Rank.
  chunk_range what;    ///< Of the sender's array.
  std::int64_t values; ///< How many there are in it; at least one, but of a call.
  buffer payload;      ///< Their copy, in order; empty where nothing is computed.
  /// How many collectives the sender has come to before in a group whose GPUs exchange
  /// the values themselves (group_calls.hpp): then `values` are all that go this way,
  /// and the message has none of them.
  int call = no_call;

  bool is_call() const { return call != no_call; }
  std::int64_t bytes() const { return values * std::int64_t{sizeof(float)}; }
};

} // namespace troupe
