// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/collectives/collective_run.hpp"
#include "experiments/options/collective_options.hpp"

#include <optional>

namespace troupe {

/// One collective, measured in virtual time.
struct collective_measurement {
  collective_order order;
  int ranks;
  collective_traffic sent;
  double seconds;
  collective_cost formula_cost; ///< The cost by the textbook's formula.
  /// Seconds by the formula; absent if ranks are on several machines.
  std::optional<double> formula_seconds;
  std::int64_t checked_values; ///< Length of the arrays whose results were compared.
  bool is_right;               ///< True if results equal a plain loop's, bit for bit.
};

/// Runs a collective, and compares the result with a plain loop's. Arrays have real
/// values up to a length that bounds the memory and the additions of all ranks. If
/// `asked` has longer arrays, a run without values is measured, and the result of a
/// second run with shorter arrays is compared.
collective_measurement measure(const collective_options& asked,
                               const collective_order& order, int ranks);

/// The size of an array, in bytes, above which a ring's all_reduce is faster than a
/// tree's.
struct crossover {
  double measured; ///< By runs in virtual time.
  /// 2 (K - 1 - L) latency / ((L - (K - 1) / K) (2 / bandwidth + 1 / sum_rate)) for K
  /// ranks, where L = ceil(log2 K). The term 1 / sum_rate is left out if sums take no
  /// time.
  double formula_bytes;
};

/// Measures the crossover in virtual time, and computes the crossover by formula.
/// Absent if the ring is never slower (up to three ranks, or without latency), or if
/// bytes take no time.
/// \param sum_rate bytes per second that a rank adds; 0: sums take no time
std::optional<crossover> ring_beats_tree(int ranks, const link_cost& link,
                                         double sum_rate = 0);

} // namespace troupe
