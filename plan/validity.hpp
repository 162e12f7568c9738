// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/memory_check.hpp"
#include "plan/run_plan.hpp"

#include <optional>
#include <string>
#include <vector>

// Which plans can run: rules as rows of one table, and the rules that a plan breaks.

namespace troupe {

/// A rule that a plan breaks.
struct broken_rule {
  /// Name of the rule, as `experts_divide_data`; stays the same between versions.
  std::string name;
  /// One sentence for the user: the reason, the values that are allowed, and the option
  /// to change.
  std::string sentence;
  /// The options that can mend the plan, as `--mesh`.
  std::vector<std::string> options;
};

/// The machine that a plan is checked for.
struct checked_machine {
  /// Returns the bytes that the caller of a training allocates in addition during the
  /// run; may be empty. Called only if the plan has a training.
  caller_bytes_counter count_caller_bytes = {};
  /// The ranks that use this machine's memory and GPUs; absent if all ranks do.
  std::optional<std::vector<int>> local_ranks = {};
};

/// Returns all rules that a plan breaks, in the order of the table; empty if the plan
/// can be run. If the mesh or the schedule's sizes are not valid, rules that need valid
/// sizes are left out.
/// Programs and memory are checked only if the plan breaks no other rule.
std::vector<broken_rule> broken_rules(const run_plan& plan,
                                      const checked_machine& machine = {});

/// Returns the sentence of the first rule that a plan breaks; empty if the plan can be
/// run.
/// \param count_caller_bytes as in checked_machine
/// \param local_ranks as in checked_machine
std::string validation_error(const run_plan& plan,
                             const caller_bytes_counter& count_caller_bytes = {},
                             const std::optional<std::vector<int>>& local_ranks = {});

} // namespace troupe
