// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

// A greedy search for the programs of a batch, and the choice of the fastest candidate.

namespace troupe {

/// Costs and limits of a greedy search. The search advances one clock over all ranks.
/// Each idle rank starts the best action whose input has arrived.
struct search_rules {
  bool splits = false; ///< Backwards are input gradients and weight gradients.
  // Time of an action of a stage, in any unit: one value per stage, or one for all
  // stages.
  std::vector<std::int64_t> forward = {1};
  /// Time of a backward, or of an input gradient if backwards are split.
  std::vector<std::int64_t> backward = {1};
  std::vector<std::int64_t> weight = {1}; ///< Used if backwards are split.
  // The search ignores updates and latency; the comparison of programs counts both.
  std::vector<std::int64_t> update = {0};
  std::int64_t latency = 0; ///< Time of a message between ranks.

  int most_held = 0; ///< Most stage-microbatches of a rank; 0: no limit.
  int in_flight = 0; ///< Most microbatches in the pipeline; 0: no limit.

  // Preferences that callers try both ways, for split backwards.
  /// After a backward comes a forward that has arrived.
  bool alternates = false;
  /// A forward comes before a weight gradient that could run too.
  bool forward_first = true;
  /// Most forwards that a rank of one stage runs ahead of backwards: 1 as in 1F1B, 2
  /// for about twice as many, 0 for no limit.
  int ahead = 0;
  /// A rank waits for an input that arrives before a weight gradient would be half
  /// done.
  bool waits = false;
};

/// The actions of a batch, one row per rank.
using batch_programs = std::vector<std::vector<action>>;

/// Runs one search. Backwards go before forwards, and lower microbatches before higher
/// ones. Of one microbatch, the last stage goes first. \pre one direction; most_held
/// lets each rank hold all hosted stages
batch_programs search(const search_rules& rules, const placement& where,
                      const shape& dims);

/// The makespan of `dims.steps` batches of the programs, in the unit of the costs of
/// `rules`. \pre one direction, and no rank waits for ever
std::int64_t makespan_of(const batch_programs& programs, const search_rules& rules,
                         const placement& where, const shape& dims);

/// The rules that are tried for a shape.
using tried_rules = std::function<std::vector<search_rules>(const shape& dims)>;

/// Programs of schedules that need no search, for a shape.
using known_programs = std::function<std::vector<batch_programs>(const shape& dims)>;

/// Programs of the fastest of several searches and of `known`, computed at the first
/// request and kept. Runs of up to 7 batches are compared as a whole. Longer runs are
/// compared by 7 batches, because a settled run (bounds.hpp) has at least that many.
/// Safe to call from several threads.
explicit_program best_of(tried_rules tried, placement where, known_programs known = {});

} // namespace troupe
