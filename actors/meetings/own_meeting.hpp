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

namespace troupe {

/// Whose object it is, as errors and reports say it.
std::string name_of_own_meeting(int stage, int replica);

/// What the maker of a replica's object is told. \pre plan.work, or nothing is computed
exchange_place place_of_own(const run_plan& plan, int stage, int replica);

/// Data replicas of a stage that exchange gradients by a meeting of the user's own. Its
/// object sees the letters of one update at a time; those that come early wait here.
/// There is one occasion an update.
class own_meeting : public meeting {
public:
  static constexpr int exchanged = 0;

  /// \param plan outlives it \pre plan.own_exchange
  own_meeting(const run_plan& plan, position where);

  /// The gradients of the stage's buckets, of this replica; they last as long as the
  /// update.
  void expect(const std::vector<buffer>& gradients);

  letters begin(int occasion) override;
  letters take(mail::letter what) override;
  bool over(int) const override { return begun_ && early_.empty() && own_->over(); }
  std::optional<absence> waits_for() const override;

  /// The next begin() belongs to the next update. \pre over()
  void next_update();

private:
  letters sent(std::vector<exchange_letter> all) const;
  letters take_early();

  const run_plan* plan_;
  position where_;
  std::unique_ptr<own_exchange> own_;
  std::vector<std::int64_t> values_; // of each bucket
  std::vector<std::span<float>> gradients_;
  std::deque<mail::own_letter> early_; // of this update, before it has begun
  std::deque<mail::own_letter> later_; // of updates behind it
  int update_ = 0;
  bool begun_ = false;
};

} // namespace troupe
