// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/collectives/member_core.hpp"
#include "messaging/interconnect.hpp"

#include <cstdint>
#include <vector>

// Runs a whole collective in virtual time, and measures the result.

namespace troupe {

/// A collective that actors run in virtual time.
struct collective_trial {
  collective_order order;
  int ranks;
  std::int64_t values; ///< Length of each rank's array.
  machine_model machines;
  int root = 0;
  double sum_rate = 0; ///< Bytes that a rank adds per second; 0: sums take no time.
  /// One array per rank. Empty: nothing is computed.
  std::vector<std::vector<float>> arrays = {};
};

/// The measurements, counted from messages.
struct collective_result {
  collective_traffic sent; ///< Traffic that all ranks sent.
  nanoseconds makespan = 0;
  /// Each rank's array at the end; after an all_to_all the second array.
  std::vector<std::vector<float>> arrays;
};

/// Runs a collective from the instant at which all ranks begin. Blocks until the end.
/// \throws std::runtime_error if a member fails, or waits for a message that no member
/// sends
collective_result perform(collective_trial trial);

} // namespace troupe
