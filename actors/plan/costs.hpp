#pragma once

#include "kernels/virtual_clock.hpp"
#include "schedules/action.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace troupe {

/// What each op takes in virtual time: a value a stage, or one for all stages.
struct cost_table {
  std::array<std::vector<nanoseconds>, op_count> of;

  nanoseconds at(op what, int stage) const;
};

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
