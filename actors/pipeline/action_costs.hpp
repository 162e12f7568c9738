// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/rank/piece_cursor.hpp"
#include "models/slices_by_length.hpp"
#include "plan/run_plan.hpp"

#include <cstdint>
#include <map>
#include <optional>

namespace troupe {

/// The costs of a stage's actions and the sizes of its messages, from the plan. The
/// second action of a pair may be of another stage of the rank. In a simulation no
/// action has operations, and messages have size 0.
class action_costs {
public:
  /// \param plan outlives this object
  /// \param stage_share of an action's operations outside the stage's experts, 0 to 1
  action_costs(const run_plan& plan, position where, double stage_share)
    : plan_(plan), where_(where), stage_share_(stage_share) {
    // nop
  }

  /// The cost of a pass where time is modelled: operations, size, and the sizes of
  /// recomputations and of the pair's second action. In real time `operations` covers
  /// only the action itself.
  /// \param pair the second action of a pair, if `a` is the first
  charge cost_of(const action& a, const std::optional<action>& pair);

  /// 4-byte values of one sample of a microbatch that a stage receives from the
  /// previous stage.
  /// \pre stage > 0
  std::int64_t values_below(int stage, int microbatch);

private:
  const slices_by_length<float>& layers_of(int stage);
  double recomputed_share(int stage);
  double size_of(const action& a);
  double operations_of(const action& a);
  void add_segments(const action& backward, charge& cost);

  const run_plan& plan_;
  position where_;
  double stage_share_;
  // By stage of the rank or next stage: the layers of this tensor shard.
  std::map<int, std::optional<slices_by_length<float>>> layers_;
};

} // namespace troupe
