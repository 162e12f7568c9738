#pragma once

#include "actors/company.hpp"
#include "models/plain_loop.hpp"

#include <string>
#include <vector>

namespace troupe {

/// One way to see that a run did what its schedule says, and whether it holds.
struct proof {
  std::string name; ///< "plain loop", "replay", "formula"
  bool holds;
  std::string detail; ///< "equal to the bit", or what differs and where.
};

/// What one training has that the other has not: the largest relative difference of a
/// tensor (norm of the difference over norm).
struct difference {
  double relative = 0;
  std::string where; ///< The tensor; empty if they are equal to the bit.

  bool none() const { return where.empty(); }
  std::string text() const;
};
difference between(const network<float>& whole, const trained& a, const trained& b);

/// The proofs that apply to a run:
/// - a flush schedule's losses, gradients and parameters equal those of one plain loop;
/// - replaying the record in a plain loop gives the same bits (where tensor shards sum
/// in
///   another order than one device: tensors within 1e-5, here and above);
/// - all replicas end with the same parameters;
/// - the record is what the schedule's formula says, computed by a loop that has not
/// seen
///   it: versions in a plain loop, or the whole order where a local rule ran in virtual
///   time, or the rule's bounds where it ran in real time.
/// \pre the plan computes, keeps its record and its weights, and has finished
std::vector<proof> prove(const run_plan& plan, const run_result& result);

} // namespace troupe
