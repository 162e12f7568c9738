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
  /// Name of the rule, for example `experts_divide`; stays the same between versions.
  std::string name;
  /// One sentence for the user: the reason; for most rules also the values that are
  /// allowed and the option to change.
  std::string sentence;
  /// The options that can mend the plan, for example `--mesh`.
  std::vector<std::string> options;
};

/// The machine that a plan is checked for.
struct checked_machine {
  /// Returns the bytes that the caller of a training allocates in addition, during the
  /// run or after its end; may be empty. Called only if the plan has a training and
  /// breaks no other rule.
  caller_bytes_counter count_caller_bytes = {};
  /// The ranks that use the machine's memory and GPUs; absent if all ranks do.
  std::optional<std::vector<int>> local_ranks = {};
  /// Absent: this machine's memory, measured when a rule needs the memory.
  std::optional<machine_memory> memory = {};
};

/// Returns the rules that a plan breaks, in the order of the table; empty if the plan
/// can be run. Rules that need a valid mesh are left out if the mesh is not valid.
/// Rules that need valid sizes of the schedule are left out if these sizes are not
/// valid. Memory, programs and kinds of GPUs are checked only if the plan breaks no
/// earlier rule of the table.
std::vector<broken_rule> broken_rules(const run_plan& plan,
                                      const checked_machine& machine = {});

/// Returns the sentence of the first rule that a plan breaks; empty if the plan can be
/// run.
/// \param count_caller_bytes as checked_machine::count_caller_bytes
/// \param local_ranks as checked_machine::local_ranks
std::string validation_error(const run_plan& plan,
                             const caller_bytes_counter& count_caller_bytes = {},
                             const std::optional<std::vector<int>>& local_ranks = {});

} // namespace troupe
