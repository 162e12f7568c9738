// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "actors/plan/run_plan.hpp"

#include <optional>
#include <vector>

namespace troupe {

/// Optimizer shards whose gradients one norm covers. Each writes the squares of its own
/// gradients to the first, which sums them in the group's order and answers all with
/// the factor that clips. There is one occasion an update.
class norm_meeting : public meeting {
public:
  static constexpr int factor_known = 0;

  /// \param plan outlives it \pre plan.work clips
  norm_meeting(const run_plan& plan, position where);

  /// This shard's squares, and the samples that its gradients were summed over.
  void expect(mail::norm_part own) { own_ = std::move(own); }

  letters begin(int occasion) override;
  letters take(mail::letter what) override;
  bool over(int) const override { return factor_.has_value(); }
  std::optional<absence> waits_for() const override;

  /// What multiplies the gradients. \pre over()
  double factor() const { return *factor_; }

  /// The next begin() belongs to the next update.
  void next_update() { factor_.reset(); }

private:
  letters take(const mail::norm_part& part);

  const run_plan* plan_;
  std::vector<position> group_;
  mail::norm_part own_{};
  bool begun_ = false;
  int updates_ = 0;  // begun here
  int answered_ = 0; // updates, where this shard is the first
  std::vector<std::optional<mail::norm_part>> parts_; // of each in the group
  std::optional<double> factor_;
};

} // namespace troupe
