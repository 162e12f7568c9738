// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/virtual_clock.hpp"
#include "schedules/action.hpp"
#include "schedules/placement.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace troupe {

/// What each op takes in virtual time: a value a stage, or one for all stages. A
/// recomputation takes what a forward does unless it has a value of its own.
struct cost_table {
  std::array<std::vector<nanoseconds>, op_count> of;
  std::vector<nanoseconds> pair = {}; ///< A forward and a backward as one; empty: F+B.

  nanoseconds at(op what, int stage) const;

  /// With what runs with it as one: a forward with a backward may have a time of
  /// theirs.
  nanoseconds of_all(const work& what) const;
};

/// A table of what the share of the network costs that a rank has, by rank where values
/// differ, as one by stage: where a rank has several, each costs an equal part.
cost_table shared_by_stages(cost_table of_ranks, const placement& where,
                            const shape& dims);

/// The costs of a table: a tensor shard's part of each, and of updates a data replica's
/// where they share them out. Work that is no op costs nothing.
cost_model costs_from(cost_table table, int tensor = 1, int update_shares = 1);

/// What additions of values take, an operation each, where so many bytes of them are
/// added a second.
cost_model costs_of_sums(double bytes_per_second);

/// Floating-point operations of an update of so many values.
double update_operations(std::int64_t values);

/// A rank of 100 GFLOP/s.
inline constexpr double operations_a_nanosecond = 100;

/// Operations at that rate: what virtual time takes when no costs are given.
cost_model costs_by_operations();

} // namespace troupe
