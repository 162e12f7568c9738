// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <functional>
#include <optional>
#include <vector>

// Programs: the actions of each rank in order, for schedules that are not local rules.

namespace troupe {

/// A cursor in the program of one rank. Actions are generated as the cursor moves.
/// Recomputations are among the actions if the schedule recomputes.
class program {
public:
  /// \param sch need not outlive this object
  /// \param dims sizes of the run
  /// \param rank the rank whose actions the program has, from 0
  /// \pre !sch.local_rule(), and the schedule allows `dims`.
  program(const schedule& sch, const shape& dims, int rank);

  // Not copyable: a copy could share the state of the generator.
  program(program&&) = default;
  program& operator=(program&&) = default;

  /// The next action; null at the end of the program. Valid until pop().
  const action* front() const { return front_ ? &*front_ : nullptr; }

  /// The action after front(); null if there is none. Valid until pop().
  const action* second() const { return second_ ? &*second_ : nullptr; }

  /// Moves the cursor by one action.
  /// \pre front() != nullptr
  void pop() {
    front_ = second_;
    if (second_)
      second_ = next_();
  }

private:
  action_generator next_;
  std::optional<action> front_, second_;
};

/// Returns the whole program of a rank.
/// \pre !sch.local_rule(), and the schedule allows `dims`
std::vector<action> generate(const schedule& sch, const shape& dims, int rank);

/// Returns for each stage the microbatches of a batch, in the order in which gradients
/// are summed.
/// \pre the schedule has one direction, flushes, and is no local rule
std::vector<std::vector<int>> summing_orders(const schedule& sch, const shape& dims);

/// Returns programs that repeat the actions of one batch for each batch of the run.
/// \param actions_of_batch returns the actions of a rank in a batch, updates included,
/// with microbatches counted from 0
explicit_program batch_by_batch(
  std::function<std::vector<action>(int rank, const shape& dims)> actions_of_batch);

} // namespace troupe
