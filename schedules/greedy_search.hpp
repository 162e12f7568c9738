// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe {

/// What a greedy search goes by: it lets time pass on all ranks, and has each begin
/// what seems best of what has arrived.
struct search_rules {
  bool splits = false; ///< Backwards are input gradients and weight gradients.
  // What a stage takes, in any unit: a value a stage, or one for all stages.
  std::vector<std::int64_t> forward = {1};
  std::vector<std::int64_t> backward = {1}; ///< If they are split, the input gradient.
  std::vector<std::int64_t> weight = {1};   ///< If they are split.
  // Of no weight in the search, and counted where programs are compared.
  std::vector<std::int64_t> update = {0};
  std::int64_t latency = 0; ///< Of a message between ranks.

  int most_held = 0; ///< Stage-microbatches of a rank; 0: any number.
  int in_flight = 0; ///< Microbatches of the pipeline; 0: any number.

  // Of split backwards, what is tried both ways.
  bool alternates = false;   ///< After a backward comes a forward that is there.
  bool forward_first = true; ///< Before a weight gradient that could run too.
  /// Forwards that a rank of one stage runs ahead of its backwards: as 1F1B with 1,
  /// about as many again with 2; 0: any number.
  int ahead = 0;
  bool waits = false; ///< For what arrives before a weight gradient would be half done.
};

/// The actions of a batch, a row a rank.
using batch_programs = std::vector<std::vector<action>>;

/// Searches once. Backwards go before forwards, lower microbatches before higher ones,
/// of one microbatch the stage that is furthest. \pre one direction; most_held lets
/// each rank hold all its stages
batch_programs search(const search_rules& rules, const placement& where,
                      const shape& dims);

/// The makespan of `dims.steps` batches of the programs, at the costs of `rules`.
/// \pre one direction, and no rank waits for ever
std::int64_t makespan_of(const batch_programs& programs, const search_rules& rules,
                         const placement& where, const shape& dims);

/// What is tried for a shape.
using tried_rules = std::function<std::vector<search_rules>(const shape& dims)>;

/// Programs of schedules that need no search, for a shape.
using known_programs = std::function<std::vector<batch_programs>(const shape& dims)>;

/// Programs of the fastest of several searches and of `known`, made when they are first
/// asked for. Runs of up to 7 batches are compared as they are, and longer ones by
/// their first 7, as a settled run (bounds.hpp) has at least that many.
explicit_program best_of(tried_rules tried, placement where, known_programs known = {});

} // namespace troupe
