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
  collective_cost book;               ///< What the textbook says of it.
  std::optional<double> book_seconds; ///< Absent where ranks stand on many machines.
  std::int64_t checked_values;        ///< Of the arrays whose results were compared.
  bool right;                         ///< Equal to a plain loop's, to the bit.
};

/// Runs a collective, with real arrays as long as those of all ranks fit; compares the
/// outcome with a plain loop's, else that of another run with shorter arrays.
collective_measurement measure(const collective_options& asked,
                               const collective_order& order, int ranks);

/// The size of an array, in bytes, above which a ring's all_reduce beats a tree's.
struct crossover {
  double measured;
  /// 2 (K - 1 - L) latency / ((L - (K - 1) / K) (2 / bandwidth + 1 / sum_rate)), where
  /// L = ceil(log2 K), and sums that take no time have no term.
  double book;
};

/// Absent where the ring is never slower: up to three ranks, or without latency; and
/// where bytes take no time.
std::optional<crossover> ring_beats_tree(int ranks, const link_cost& link,
                                         double sum_rate = 0);

} // namespace troupe
