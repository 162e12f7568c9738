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

/// Whether a run can be repeated from its record: not where data replicas write the
/// same memory at once.
bool can_be_replayed(const run_plan& plan);

/// The proofs that apply to a run:
/// - a flush schedule's losses, gradients and parameters equal those of one plain loop;
/// - replaying the record in a plain loop gives the same bits (where tensor shards sum
/// in
///   another order than one device: tensors within 1e-5, here and above);
/// - all replicas end with the same parameters, those of one data replica where each
/// has updates of its own;
/// - the record is what the schedule's formula says, computed by a loop that has not
/// seen
///   it: versions in a plain loop, or the whole order where a local rule ran in virtual
///   time, or the rule's bounds where it ran in real time.
/// - where data replicas have updates of their own, also their order in each share of
/// the parameters is replayed, and held against the bound on staleness. \pre the plan
/// computes, keeps its record and its weights, and has finished; can_be_replayed(plan)
std::vector<proof> prove(const run_plan& plan, const run_result& result);

} // namespace troupe
