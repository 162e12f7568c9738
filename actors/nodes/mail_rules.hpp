// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/gpu_groups.hpp"
#include "messaging/wire/codec.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// What mail between the processes of a run can be, by its plan: found once, for all
/// mail. Any thread may ask.
class mail_rules {
public:
  explicit mail_rules(std::shared_ptr<const run_plan> plan);

  /// Why no actor of this run can have sent such mail to such an actor, whatever its
  /// bytes say; empty if one can. What passes has ranks, positions, versions and counts
  /// of the plan, and tensors of its sizes, so that nobody who takes it needs to look.
  std::string fault_of(const wire::addressed_mail& mail) const;

  /// The values that a buffer for a tensor of such mail has room for. They are the same
  /// for all of a kind to a stage whose sizes differ from microbatch to microbatch: a
  /// stage may use the buffer again, and there are no more kinds of buffers than that.
  /// \pre fault_of(mail).empty()
  std::int64_t room_of(const wire::addressed_mail& mail, std::int64_t bytes) const;

  /// Calls are of these groups' members alone. Once; from any thread.
  void know(const known_groups& groups);

private:
  struct judge;

  bool is_call(const mail::letter& m, const collective_message& call) const;
  bool has_edge(position from, position to) const;

  /// Sizes in values, of one shard of a stage; the same in all data replicas.
  struct of_stage {
    std::int64_t room_below =
      0; ///< Of a buffer for what it gets from below; 0: nothing.
    std::int64_t room_above = 0; ///< Likewise for gradients from above.
    std::int64_t most_rows = 0;  ///< To or from an expert, in one letter.
    std::int64_t most_array = 0; ///< Of all other letters.
  };

  const of_stage& at(position where) const {
    return stages_[static_cast<std::size_t>(
      (where.direction * plan_->dims.stages + where.stage) * plan_->tensor
      + where.tensor)];
  }

  std::shared_ptr<const run_plan> plan_;
  std::vector<of_stage> stages_; // as at() finds them
  std::vector<exchanging_group> groups_;
  std::atomic<bool> knows_groups_ = false; // the list is there, and does not change
};

} // namespace troupe
