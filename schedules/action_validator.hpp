// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/dry_run.hpp"
#include "schedules/schedule.hpp"

#include <optional>
#include <string>

// The validation of each action of a dry run, with sentences for errors and fixes.

namespace troupe {

/// An error of an action, and a simple fix; `fix` is empty if none is known.
struct step_error {
  std::string text;
  std::string fix = {};
};

/// Validates the next action of a rank against the state of a dry run. Inputs that
/// other stages make are not validated, because a missing input may still be made.
class action_validator {
public:
  /// \param sch,so_far outlive this object
  action_validator(const schedule& sch, const shape& dims, const dry_run& so_far)
    : schedule_(sch), dims_(dims), so_far_(so_far) {
    // nop
  }

  /// Returns the error of action `a` that no waiting can resolve; absent if `a` has no
  /// such error.
  /// \param following the action after `a` in the program of `rank`; null if `a` is the
  /// last
  std::optional<step_error> validate(const action& a, const action* following,
                                     int rank) const;

private:
  std::optional<step_error> placement_error(const action& a, int rank) const;
  std::optional<step_error> pair_error(const action& a, const action* following,
                                       int rank) const;
  std::optional<step_error> capacity_error(const action& a, int rank) const;
  std::optional<step_error> order_error(const action& a) const;
  std::optional<step_error> update_error(const action& a) const;
  std::optional<action> first_missing(hosted_stage where) const;

  const schedule& schedule_;
  shape dims_;
  const dry_run& so_far_;
};

} // namespace troupe
