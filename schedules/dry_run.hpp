// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/dry_run_record.hpp"
#include "schedules/schedule.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// The state of a dry run: the actions that ranks have run so far, without arithmetic.

namespace troupe {

/// The actions that ranks have run of a schedule, as flags and counters.
class dry_run {
public:
  /// \param records whether the run can be drawn, which takes 16 more bytes per stage
  /// and microbatch, and one timed_action per action
  /// \param sch is read by the constructor only; need not outlive the call
  dry_run(const schedule& sch, const shape& dims, bool records);

  /// The passes of a microbatch that a stage has run: forward, input gradient and
  /// weight gradient. A backward sets both gradients' flags.
  enum flag : unsigned char { f = 1, dx = 2, dw = 4 };

  struct stage_state {
    int versions = 0;     ///< Number of updates made.
    int summed = 0;       ///< Gradients summed since the last update.
    int last_summed = -1; ///< Microbatch whose gradient was summed last; -1: none.
    /// newest_summed: the highest microbatch whose gradient was summed.
    /// newest_forwarded: the highest microbatch whose forward has run. -1: none.
    int newest_summed = -1, newest_forwarded = -1;
  };

  /// The passes of a microbatch that a stage has run, as bits of `flag`.
  /// \pre the stage and the microbatch are of the run
  unsigned char done(int stage, int microbatch) const {
    return done_[index(stage, microbatch)];
  }

  const stage_state& stage(hosted_stage where) const { return stages_[index(where)]; }

  /// Number of stage-microbatches that a rank holds now, over all stages of the rank.
  int held(int rank) const { return held_[static_cast<std::size_t>(rank)]; }

  /// True if the last action that a rank ran is the first of a pair.
  bool within_pair(int rank) const {
    return within_pair_[static_cast<std::size_t>(rank)];
  }

  /// The action that makes the input of `a`: a forward, or a backward (which also
  /// stands for an input gradient). Absent for F of stage 0, and for W, U and R.
  std::optional<action> maker_of(const action& a) const;

  /// True if the input of `a` exists: maker_of(a) has run, or is absent.
  bool has_input(const action& a) const;

  /// Records that a rank runs `a`.
  /// \pre has_input(a), and action_validator::validate() finds no error in `a`
  void apply(const action& a, int rank);

  /// Draws the last actions of the run, see dry_run_record::draw().
  /// \pre the object was made with `records`
  std::string draw(int failed_rank,
                   const std::vector<std::optional<action>>& next) const {
    return record_->draw(failed_rank, next);
  }

private:
  std::size_t index(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(dims_.total())
           + static_cast<std::size_t>(microbatch);
  }
  std::size_t index(hosted_stage where) const {
    return static_cast<std::size_t>(where.direction)
             * static_cast<std::size_t>(dims_.stages)
           + static_cast<std::size_t>(where.stage);
  }
  void note(const action& a, int rank);

  shape dims_;
  std::vector<unsigned char> done_;
  std::vector<stage_state> stages_;
  std::vector<int> held_;         // per rank
  std::vector<bool> within_pair_; // per rank
  std::optional<dry_run_record> record_;
  std::vector<std::array<std::int64_t, 2>> ends_; // end times: F, gradient
};

} // namespace troupe
