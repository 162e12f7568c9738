// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/virtual_clock.hpp"
#include "schedules/action.hpp"
#include "schedules/placement.hpp"

#include <array>
#include <cstdint>
#include <vector>

// Costs of actions in virtual time: tables by op and stage, and cost models made from
// tables, rates or operation counts.

namespace troupe {

/// Duration of each op in virtual time, in nanoseconds: one value per stage, or one
/// value for all stages. A recomputation without a value takes as long as a forward.
/// Any other op without a value takes no time.
struct cost_table {
  std::array<std::vector<nanoseconds>, op_count> by_op;
  /// Duration of a forward and a backward (or input gradient) that run as one, in
  /// nanoseconds, with values as in `by_op`. Empty: the sum of both durations.
  std::vector<nanoseconds> pair = {};

  /// Duration of one op on a stage, of the largest microbatch, in nanoseconds.
  nanoseconds duration_of(op operation, int stage) const;

  /// Duration of `device_work` together with all works in `device_work.also`, in
  /// nanoseconds. Each work's duration is multiplied by that work's size. A forward
  /// with a backward or an input gradient in `also` takes the `pair` duration times the
  /// mean of both sizes, unless `pair` is empty.
  /// \pre all works are ops: each kind is below op_count
  nanoseconds total_duration(const work& device_work) const;
};

/// Converts a table by rank into a table by stage. `of_ranks` gives the cost of a
/// rank's share of the network. The cost of a rank that hosts several stages is divided
/// equally among these stages. With as many ranks as stages, the table stays unchanged,
/// also if a rank hosts a stage of each direction.
cost_table shared_by_stages(cost_table of_ranks, const placement& where,
                            const shape& dims);

/// Cost model of a table. The cost of each op is divided by `tensor`, the number of
/// tensor shards. The cost of an update is also divided by `update_shares`, the number
/// of data replicas that divide updates. Work that is no op costs nothing.
cost_model costs_from(cost_table table, int tensor = 1, int update_shares = 1);

/// Cost model of additions of fp32 values. `work::operations` is the number of added
/// values, of 4 bytes each.
/// \param bytes_per_second bytes that are added per second; 0: additions take no time
cost_model costs_of_sums(double bytes_per_second);

/// Floating-point operations of an optimizer update of `values` parameters.
double update_operations(std::int64_t values);

/// Operations per nanosecond of a modelled rank: 100 GFLOP/s.
inline constexpr double operations_a_nanosecond = 100;

/// Cost model that divides the operations of work by `operations_a_nanosecond`. Virtual
/// time uses this model when a run gives no costs.
cost_model costs_by_operations();

} // namespace troupe
