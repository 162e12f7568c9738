// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/collectives/member_core.hpp"
#include "messaging/interconnect.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// A collective to be run by actors in virtual time.
struct collective_trial {
  collective_order order;
  int ranks;
  std::int64_t values; ///< Of each rank's array.
  machine_model machines;
  int root = 0;
  double sum_rate = 0; ///< Bytes that a rank adds a second; 0: sums take no time.
  /// One a rank. Empty: nothing is computed.
  std::vector<std::vector<float>> arrays = {};
};

/// What was measured, from the messages.
struct collective_result {
  collective_traffic sent; ///< By all ranks.
  nanoseconds makespan = 0;
  /// What each rank's array holds in the end; of an all_to_all the second array.
  std::vector<std::vector<float>> arrays;
};

/// Runs a collective from the instant at which all ranks begin.
/// \throws std::runtime_error if a member fails or waits for what nobody sends
collective_result perform(collective_trial trial);

} // namespace troupe
