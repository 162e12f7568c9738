#pragma once

#include "kernels/pool.hpp"
#include "messaging/chunks.hpp"

#include <cstdint>

namespace troupe {

/// What one rank sends another for a collective.
struct collective_message {
  int instance;        ///< Which collective: its members agree on the number.
  int round;           ///< Of the collective; a rank sends another one message a round.
  int from;            ///< Rank.
  int to;              ///< Rank.
  chunk_range what;    ///< Of the sender's array.
  std::int64_t values; ///< How many there are in it; at least one.
  buffer payload;      ///< Their copy, in order; empty where nothing is computed.

  std::int64_t bytes() const { return values * std::int64_t{sizeof(float)}; }
};

} // namespace troupe
