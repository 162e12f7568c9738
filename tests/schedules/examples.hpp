// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/catalog/catalog.hpp"

#include <optional>
#include <vector>

/// Schedules that the catalog does not have.
namespace examples {

using namespace troupe;

/// A schedule on the looped placement. No paper's formula has the resulting name.
inline schedule looped(schedule of, int rounds) {
  of.name = "looped " + of.name;
  of.where = placement::looped(rounds);
  return of;
}

/// GPipe that forwards the next batch before the backwards of the current batch, with
/// 2BW's weights: the programs cross batches.
///
///   rank 0  F0 F1 F2 F3 .  .  B0 B1 F4 F5 ...      2 stages, 2 microbatches a batch
///   rank 1  .  F0 F1 F2 F3 B0 B1 .  .  F4 F5 ...   B1 is followed by a U
inline schedule one_batch_ahead() {
  const auto start = [](int rank, const shape& dims) -> action_generator {
    // Round t forwards batch t, then backwards batch t - 1.
    return [rank, dims, round = 0, at = 0]() mutable -> std::optional<action> {
      const int m = dims.microbatches;
      if (at > 2 * m || (round == 0 && at == m)) {
        ++round;
        at = 0;
      }
      if (round == dims.steps && at == 0)
        at = m;
      if (round > dims.steps)
        return {};
      const int i = at++;
      if (i < m)
        return action{op::forward, 0, rank, round * m + i};
      if (i < 2 * m)
        return action{op::backward, 0, rank, (round - 1) * m + i - m};
      return action{op::update, 0, rank, round * m - 1};
    };
  };
  return {.name = "one batch ahead", .order = start, .weights = two_bw().weights};
}

} // namespace examples
