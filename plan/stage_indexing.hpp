// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/run_plan.hpp"

#include <cstddef>

namespace troupe {

/// Indexes of stages and optimizer shards in a run's lists of all stages and all
/// optimizer shards. Stages are ordered by data replica, direction, tensor shard, then
/// stage. Optimizer shards are ordered by data replica, tensor shard, then stage.
class stage_indexing {
public:
  /// \param plan outlives this object
  explicit stage_indexing(const run_plan& plan) : plan_(&plan) {
    // nop
  }

  int stages() const { return plan_->dims.stages; }
  int directions() const { return plan_->directions(); }

  /// Number of pipelines: one for each data replica, direction and tensor shard.
  int pipelines() const { return plan_->replicas() * plan_->mesh[axis::tensor]; }

  /// Position of stage `stage` of pipeline `pipeline`.
  position stage_at(int pipeline, int stage) const {
    const int replica = pipeline / plan_->mesh[axis::tensor];
    return {replica / directions(), replica % directions(), stage,
            pipeline % plan_->mesh[axis::tensor]};
  }

  /// Index of the pipeline that a stage belongs to.
  std::size_t pipeline(position where) const {
    return static_cast<std::size_t>(plan_->replica_at(where) * plan_->mesh[axis::tensor]
                                    + where.tensor);
  }

  /// Index of a stage in lists of all stages.
  std::size_t index(position where) const {
    return pipeline(where) * static_cast<std::size_t>(stages())
           + static_cast<std::size_t>(where.stage);
  }

  /// Index of a stage's optimizer shard in lists of all optimizer shards. The stages of
  /// all directions have one optimizer shard.
  std::size_t shard_index(position where) const {
    return static_cast<std::size_t>(
      (where.data * plan_->mesh[axis::tensor] + where.tensor) * stages() + where.stage);
  }

  /// Number of optimizer shards in a run.
  std::size_t shards() const {
    return static_cast<std::size_t>(plan_->mesh[axis::data] * plan_->mesh[axis::tensor]
                                    * stages());
  }

  /// Calls `each(where)` for the position of every optimizer shard, with direction 0,
  /// in the order of `shard_index`.
  template <class Each>
  void for_each_shard(const Each& each) const {
    for (int d = 0; d < plan_->mesh[axis::data]; ++d)
      for (int t = 0; t < plan_->mesh[axis::tensor]; ++t)
        for (int s = 0; s < stages(); ++s)
          each(position{d, 0, s, t});
  }

private:
  const run_plan* plan_;
};

} // namespace troupe
