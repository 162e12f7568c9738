// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "kernels/pool.hpp"
#include "messaging/collectives_under_way.hpp"
#include "messaging/position.hpp"
#include "models/layer.hpp"

#include <vector>

namespace troupe {

struct run_plan;

/// The meeting of the tensor shards of a stage: one collective after another. Each
/// collective is a sum, a gather or a scatter over arrays of equal size, one in each
/// shard. The index of a step is the index in the list that expect() received.
class tensor_meeting : public meeting {
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
  meeting_messages receive(mail::meeting_message received) override;
  bool is_done(int) const override { return under_way_.none(); }
  std::optional<missing_peer> waits_for() const override;
  void yield_sums(const sum_requester& request) override;
  void exchange_by(const group_finder& groups, const sum_requester& request) override;

private:
  meeting_messages sent(std::vector<collective_message> messages) const;

  const run_plan* plan_;
  position where_;
  pool* payloads_;
  std::vector<shard_collective<float>> expected_;
  int started_count_ = 0;
  collectives_under_way under_way_;
};

} // namespace troupe
