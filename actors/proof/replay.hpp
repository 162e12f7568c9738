#pragma once

#include "actors/plan.hpp"
#include "actors/record.hpp"
#include "actors/shared_parameters.hpp"
#include "models/plain_loop.hpp"

namespace troupe {

/// Trains once more without actors: each stage does what the record says it did, in
/// that order, on the versions that it says it read. What comes out must equal the
/// run's result to the bit. \pre plan.work \throws std::logic_error if the record
/// cannot have happened
/// \param accesses to parameters that data replicas update one by one
trained replay(const run_plan& plan, const record& ran,
               const shared_history& accesses = {});

/// Sums n values of all pipelines' arrays into the first, in the order in which a run
/// of this plan does: the directions of each data replica, then those by its exchange.
void sum_replicas(const run_plan& plan, const std::vector<float*>& arrays,
                  std::int64_t n);

/// The same of the data replicas of one direction, in the exchange's order.
void sum_data_replicas(const run_plan& plan, const std::vector<float*>& arrays,
                       std::int64_t n);

} // namespace troupe
