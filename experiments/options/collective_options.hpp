// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/machine_options.hpp"
#include "messaging/collective_catalog.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Options of collectives that run alone, as typed by the user.
struct typed_collectives {
  std::vector<int> ranks = {8};
  std::optional<std::int64_t> values;
  std::optional<std::int64_t> bytes;
  std::vector<std::string> operations; ///< Empty: all operations.
  std::vector<std::string> algorithms; ///< Empty: all algorithms.
  double latency = 0.01;               ///< Latency of a message, in milliseconds.
  double bandwidth = 1e10; ///< Bytes per second of a port; 0: bytes take no time.
  double sum = 0;          ///< Bytes per second that a rank adds; 0: sums take no time.
  std::string machines;
};

/// Collectives that run alone; each collective runs once for each number of ranks.
struct collective_options {
  std::vector<collective_order> orders;
  std::vector<int> ranks;
  std::int64_t values = 0; ///< Values in each rank's array; a value has 4 bytes.
  machine_options machines;
  double sum_rate = 0; ///< Bytes per second that a rank adds; 0: sums take no time.
};

/// Parses and checks the typed options. The error is one sentence with the mistake and
/// the allowed values.
tl::expected<collective_options, std::string> parse(const typed_collectives& typed);

} // namespace troupe
