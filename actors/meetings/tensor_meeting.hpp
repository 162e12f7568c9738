// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/collective_meeting.hpp"
#include "kernels/pool.hpp"
#include "models/layer.hpp"

#include <vector>

namespace troupe {

/// The meeting of the tensor shards of a stage: one collective after another. Each
/// collective is a sum, a gather or a scatter over arrays of equal size, one in each
/// shard. The index of a step is the index in the list that expect() received.
class tensor_meeting : public collective_meeting {
public:
  /// \param plan outlives the meeting
  /// \param payloads the buffers of messages; outlives the meeting; null where nothing
  /// is computed
  tensor_meeting(const run_plan& plan, position where, pool* payloads);

  /// To be called when an action begins, with the action's collectives in order. The
  /// arrays must stay valid until the action ends.
  void expect(std::vector<shard_collective<float>> collectives) {
    expected_ = std::move(collectives);
  }

  meeting_messages begin(int index) override;
  bool is_done(int) const override { return none(); }

private:
  position member_at(int instance, int member) const override;
  traffic traffic_of(int) const override { return traffic::tensor; }

  pool* payloads_;
  std::vector<shard_collective<float>> expected_;
  int started_count_ = 0;
};

} // namespace troupe
