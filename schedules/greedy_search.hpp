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
  bool splits = false; ///< True if each backward is an I and a W.
  /// Time of a forward. All times are in one unit, with one value per stage, or one
  /// value for all stages.
  std::vector<std::int64_t> forward = {1};
  /// Time of a backward, or of an input gradient if backwards are split.
  std::vector<std::int64_t> backward = {1};
  /// Time of a weight gradient; used if backwards are split.
  std::vector<std::int64_t> weight = {1};
  /// Time of an update. The search ignores updates and latency; the comparison of
  /// programs counts both.
  std::vector<std::int64_t> update = {0};
  std::int64_t latency = 0; ///< Time of a message between ranks.

  int most_held = 0; ///< Most stage-microbatches that a rank holds; 0: no limit.
  /// Most microbatches admitted whose backward at stage 0 has not ended; 0: no limit.
  int in_flight = 0;

  /// After a backward, a rank prefers a forward that has arrived.
  bool alternates = false;
  /// A rank prefers a forward to a weight gradient that could also run.
  bool forward_first = true;
  /// Limit of the forwards that a rank with one stage runs ahead of backwards. 1: as
  /// many as in 1F1B; 2: about twice as many as in 1F1B; 0: no limit.
  int ahead = 0;
  /// True if a rank that could only run a weight gradient waits instead, when an input
  /// arrives before half of the weight gradient would be done.
  bool waits = false;
};

/// The actions of a batch, one row per rank.
using batch_programs = std::vector<std::vector<action>>;

/// Runs one search, and returns the programs, with updates at the end. Backwards go
/// before forwards, except as `alternates` says. Lower microbatches go before higher
/// ones. Of one microbatch, the highest stage goes first.
/// \pre `where` has one direction
/// \pre `most_held` is 0, or at least the number of stages that a rank hosts
batch_programs search(const search_rules& rules, const placement& where,
                      const shape& dims);

/// The makespan of `dims.steps` batches of the programs, in the unit of the costs of
/// `rules`.
/// \pre `where` has one direction
/// \throws std::logic_error if a rank of the programs waits forever
std::int64_t makespan_of(const batch_programs& programs, const search_rules& rules,
                         const placement& where, const shape& dims);

/// Returns the rules that a search tries for a shape, at least one. All candidates are
/// compared by the costs of the first rules.
using tried_rules = std::function<std::vector<search_rules>(const shape& dims)>;

/// Returns programs for a shape that need no search, as further candidates.
using known_programs = std::function<std::vector<batch_programs>(const shape& dims)>;

/// Returns the programs of the fastest candidate: searches by each of `tried`, and
/// `known`. Candidates are computed at the first request for a shape; the fastest is
/// kept. Runs of up to 7 batches are compared as a whole. Longer runs are compared by 7
/// batches. A settled run (bounds.hpp) of a longer run has at least 7 batches, and
/// therefore the same programs. Threads may call the result at the same time.
/// \param known may be empty
explicit_program best_of(tried_rules tried, placement where, known_programs known = {});

} // namespace troupe
