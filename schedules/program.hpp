// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace troupe {

/// A cursor in what one rank does, in order. Actions are generated as it moves on.
/// Recomputations stand among them, where the schedule says that there are any.
class program {
public:
  /// \pre !sch.local_rule(), and the schedule allows `dims`.
  program(const schedule& sch, const shape& dims, int rank);

  // A copy could share what its generator keeps.
  program(program&&) = default;
  program& operator=(program&&) = default;

  /// The next action; null when all is done.
  const action* front() const { return front_ ? &*front_ : nullptr; }

  /// The one behind it; null if there is none.
  const action* second() const { return second_ ? &*second_ : nullptr; }

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

/// The whole program of a rank.
std::vector<action> generate(const schedule& sch, const shape& dims, int rank);

/// The microbatches of a batch in the order in which each stage sums their gradients.
/// \pre the schedule has one direction, and flushes
std::vector<std::vector<int>> summing_orders(const schedule& sch, const shape& dims);

/// Programs that repeat the actions of a batch, in which microbatches count from 0.
explicit_program batch_by_batch(
  std::function<std::vector<action>(int rank, const shape& dims)> actions_of_batch);

} // namespace troupe
