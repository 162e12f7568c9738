// SPDX-License-Identifier: BSD-3-Clause
// Programs laid out in time, without actors, and measures of the layout for tests.
#pragma once

#include "schedules/bounds.hpp"
#include "schedules/prediction.hpp"
#include "schedules/program.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe::laid_out {

struct outcome {
  std::int64_t makespan = 0;
  std::vector<std::int64_t> idle;      // by rank
  std::vector<std::int64_t> span_idle; // between its first action and its last
};

/// The cost of each action of a stage, in any unit.
struct costs {
  int f, b, i, w;

  int of(op what) const {
    switch (what) {
    case op::forward:
      return f;
    case op::backward:
      return b;
    case op::input_gradient:
      return i;
    case op::weight_gradient:
      return w;
    default:
      return 0;
    }
  }
};

inline outcome simulated(const schedule& sch, const shape& dims, const costs& of) {
  const auto ran = predict(
    sch, dims, [&](const action& a) { return of.of(a.op); },
    [](const action&) { return 0; });
  outcome result;
  for (const auto& row : ran)
    result.makespan = std::max(result.makespan, row.back().end);
  for (const auto& row : ran) {
    result.idle.push_back(result.makespan);
    for (const auto& cell : row)
      result.idle.back() -= cell.end - cell.start;
    result.span_idle.push_back(result.idle.back() - row.front().start
                               - (result.makespan - row.back().end));
  }
  return result;
}

inline outcome simulated(const schedule& sch, const shape& dims, int f, int b) {
  return simulated(sch, dims, {f, b, 0, 0});
}

/// On a number of ranks, at F = I = W = 1 for a rank's share. If a rank has several
/// stages, the costs of a stage are parts of that.
inline outcome on_ranks(const schedule& sch, int ranks, int microbatches) {
  return simulated(sch, {stages_on(sch.where, ranks), microbatches}, {1, 2, 1, 1});
}

inline std::vector<std::int64_t> all(int ranks, std::int64_t value) {
  return std::vector(static_cast<std::size_t>(ranks), value);
}

inline std::vector<int> peaks(const schedule& sch, const shape& dims,
                              int stage_bounds::*what) {
  std::vector<int> result;
  for (int rank = 0; rank < ranks_of(sch.where, dims); ++rank) {
    int sum = 0;
    for (const auto& bound : bounds_of(sch, dims, rank))
      sum += bound.*what;
    result.push_back(sum);
  }
  return result;
}

/// Largest number of microbatches that each rank holds at once, over all stages of the
/// rank.
inline std::vector<int> peak_activations(const schedule& sch, const shape& dims) {
  std::vector<int> result;
  for (int rank = 0; rank < ranks_of(sch.where, dims); ++rank) {
    int now = 0, most = 0;
    for (const auto& a : generate(sch, dims, rank)) {
      now +=
        (a.op == op::forward) - (a.op == op::backward || a.op == op::weight_gradient);
      most = std::max(most, now);
    }
    result.push_back(most);
  }
  return result;
}

} // namespace troupe::laid_out
