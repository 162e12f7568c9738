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
  int root = 0;        ///< Rank at the root, for orders that have one (broadcast).
  double sum_rate = 0; ///< Bytes that a rank adds per second; 0: sums take no time.
  /// One array per rank. Empty: only traffic and time are computed.
  std::vector<std::vector<float>> arrays = {};
};

/// The measurements, counted from messages.
struct collective_result {
  collective_traffic sent;  ///< Traffic of all ranks, by collective_traffic::add().
  nanoseconds makespan = 0; ///< From the start to the end of the last rank.
  /// Each rank's array at the end, or each rank's second array if the order is not in
  /// place (all_to_all). Empty if the trial has no arrays.
  std::vector<std::vector<float>> arrays;
};

/// Runs a collective in virtual time; all ranks begin at time 0. Blocks until the end,
/// and returns the measurements.
/// \throws std::runtime_error if a member fails, or waits for a message that no member
/// sends
/// \pre `trial.arrays` is empty, or has an array for each rank
collective_result perform(collective_trial trial);

} // namespace troupe
