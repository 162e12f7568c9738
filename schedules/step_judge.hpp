// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/rehearsed_run.hpp"
#include "schedules/schedule.hpp"

#include <optional>
#include <string>

namespace troupe {

/// What is wrong with a step, and what would mend it, if that is simple.
struct reproach {
  std::string what;
  std::string mend = {};
};

/// Judges the next step of a rank by what has been rehearsed.
class step_judge {
public:
  /// \param sch,so_far outlive it
  step_judge(const schedule& sch, const shape& dims, const rehearsed_run& so_far)
    : schedule_(sch), dims_(dims), so_far_(so_far) {
    // nop
  }

  /// What no waiting can mend. \param behind the step behind `a`; null: none
  std::optional<reproach> objection(const action& a, const action* behind,
                                    int rank) const;

private:
  std::optional<reproach> misplaced(const action& a, int rank) const;
  std::optional<reproach> wrong_pair(const action& a, const action* behind,
                                     int rank) const;
  std::optional<reproach> unheld(const action& a, int rank) const;
  std::optional<reproach> out_of_order(const action& a) const;
  std::optional<reproach> bad_update(const action& a) const;
  std::optional<action> first_missing(hosted_stage where) const;

  const schedule& schedule_;
  shape dims_;
  const rehearsed_run& so_far_;
};

} // namespace troupe
