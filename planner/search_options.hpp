// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Options of searches, as in mcmc:seed=3. A catalog row names those that a planner
// reads.

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::planner {

struct search_options {
  std::uint64_t seed = 1;     ///< Of random draws.
  int chains = 4;             ///< Independent Markov chains; the best result counts.
  int proposals = 2000;       ///< Of each chain.
  int samples = 2000;         ///< Plans that a policy draws.
  int askings = 32;           ///< Rows that a Bayesian search may measure.
  std::optional<int> seconds; ///< Of an integer programme; absent: the planner's own.
  std::string costs;          ///< File of a learned cost model.
};

} // namespace troupe::planner
