// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/rehearsal_record.hpp"
#include "schedules/schedule.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What ranks have done of a run, without arithmetic.
class rehearsed_run {
public:
  /// \param records whether it can be drawn, for 16 bytes a stage and microbatch more
  /// \param sch outlives it
  rehearsed_run(const schedule& sch, const shape& dims, bool records);

  enum flag : unsigned char { f = 1, dx = 2, dw = 4 };

  struct stage_state {
    int versions = 0;                              ///< Updates made.
    int summed = 0;                                ///< Gradients since the last one.
    int last_summed = -1;                          ///< Microbatch.
    int newest_summed = -1, newest_forwarded = -1; ///< The highest of them.
  };

  /// Which parts of a microbatch's passes a stage has done: flags.
  unsigned char done(int stage, int microbatch) const {
    return done_[index(stage, microbatch)];
  }

  const stage_state& stage(hosted_stage where) const { return stages_[index(where)]; }

  /// Stage-microbatches that a rank holds.
  int held(int rank) const { return held_[static_cast<std::size_t>(rank)]; }

  /// Whether the second of a pair is what a rank runs next.
  bool within_pair(int rank) const {
    return within_pair_[static_cast<std::size_t>(rank)];
  }

  /// The action that makes the input of `a`; absent if that comes from nobody.
  std::optional<action> maker_of(const action& a) const;

  /// Whether that has been done.
  bool has_input(const action& a) const;

  void perform(const action& a, int rank);

  /// \pre it records
  std::string draw(int guilty, const std::vector<std::optional<action>>& next) const {
    return record_->draw(guilty, next);
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
  std::vector<int> held_;         // a rank
  std::vector<bool> within_pair_; // likewise
  std::optional<rehearsal_record> record_;
  std::vector<std::array<std::int64_t, 2>> ends_; // of forwards, and of gradients
};

} // namespace troupe
