// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "actors/plan/run_plan.hpp"
#include "kernels/pool.hpp"

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

// The meeting of data replicas that exchange gradients by the user's own code.

namespace troupe {

/// The name of a replica's meeting, for errors and reports.
std::string name_of_own_meeting(int stage, int replica);

/// The description of a replica for the user's function that makes the exchange object.
/// \pre plan.work, or nothing is computed
exchange_place place_of_own(const run_plan& plan, int stage, int replica);

/// Data replicas of a stage exchange gradients by an object of the user's. The object
/// receives the messages of one update at a time; early messages wait here. Each update
/// has one step.
class own_meeting : public meeting {
public:
  static constexpr int exchanged = 0;

  /// \param plan outlives the meeting \pre plan.user_exchange
  own_meeting(const run_plan& plan, position where);

  /// The gradients of the stage's buckets, of this replica. The buffers must outlive
  /// the update.
  void expect(const std::vector<buffer>& gradients);

  letters begin(int occasion) override;
  letters take(mail::letter what) override;
  bool over(int) const override { return begun_ && early_.empty() && own_->over(); }
  std::optional<absence> waits_for() const override;

  /// The next begin() belongs to the next update. \pre is_done()
  void next_update();

private:
  letters sent(std::vector<exchange_letter> all) const;
  letters take_early();

  const run_plan* plan_;
  position where_;
  std::unique_ptr<own_exchange> own_;
  std::vector<std::int64_t> values_; // of each bucket
  std::vector<std::span<float>> gradients_;
  std::deque<mail::own_letter> early_; // of this update, before begin()
  std::deque<mail::own_letter> later_; // of later updates
  int update_ = 0;
  bool begun_ = false;
};

} // namespace troupe
