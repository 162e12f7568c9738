// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/rehearsed_run.hpp"
#include "schedules/schedule.hpp"

#include <optional>
#include <string>

// The validation of each step of a dry run, with sentences for errors and fixes.

namespace troupe {

/// An error of a step, and a simple fix if one is known.
struct reproach {
  std::string what;
  std::string mend = {};
};

/// Validates the next step of a rank against the state of a dry run.
class step_judge {
public:
  /// \param sch,so_far outlive this object
  step_judge(const schedule& sch, const shape& dims, const rehearsed_run& so_far)
    : schedule_(sch), dims_(dims), so_far_(so_far) {
    // nop
  }

  /// The error of step `a` that no waiting can resolve; absent if there is none. \param
  /// following the step after `a`; null: there is none
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
