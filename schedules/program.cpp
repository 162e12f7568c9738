// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/program.hpp"

#include "schedules/slot_program.hpp"

#include <cstddef>
#include <deque>
#include <utility>

namespace troupe {

namespace {

/// Inserts a recomputation before each backward or input gradient, or before the pair
/// that contains one.
action_generator with_recomputations(action_generator source) {
  return [source_actions = std::move(source),
          next = std::deque<action>{}]() mutable -> std::optional<action> {
    if (next.empty()) {
      do
        if (const auto a = source_actions())
          next.push_back(*a);
        else
          break;
      while (next.size() < 2 && next.front().pair == in_pair::first);
      if (next.empty())
        return {};
      if (const auto last = next.back(); goes_back(last.op))
        next.push_front({op::recompute, last.direction, last.stage, last.microbatch});
    }
    const auto result = next.front();
    next.pop_front();
    return result;
  };
}

action_generator generator_of(const schedule& sch, const shape& dims, int rank) {
  action_generator result;
  if (const auto* start = std::get_if<explicit_program>(&sch.order))
    result = (*start)(rank, dims);
  else
    result = slot_program{sch, dims, rank};
  if (!result) // an empty program
    result = [] { return std::optional<action>{}; };
  return sch.recomputes == recomputation::none ? result
                                               : with_recomputations(std::move(result));
}

} // namespace

program::program(const schedule& sch, const shape& dims, int rank)
  : next_(generator_of(sch, dims, rank)), front_(next_()) {
  if (front_)
    second_ = next_();
}

std::vector<action> generate(const schedule& sch, const shape& dims, int rank) {
  std::vector<action> result;
  for (program p{sch, dims, rank}; p.front() != nullptr; p.pop())
    result.push_back(*p.front());
  return result;
}

std::vector<std::vector<int>> summing_orders(const schedule& sch, const shape& dims) {
  auto batch = dims;
  batch.steps = 1;
  std::vector<std::vector<int>> result(static_cast<std::size_t>(dims.stages));
  for (int rank = 0; rank < ranks_of(sch.where, batch); ++rank)
    for (const auto& a : generate(sch, batch, rank))
      if (adds_gradient(a.op))
        result[static_cast<std::size_t>(a.stage)].push_back(a.microbatch);
  return result;
}

explicit_program batch_by_batch(
  std::function<std::vector<action>(int rank, const shape& dims)> actions_of_batch) {
  return [actions_of_batch = std::move(actions_of_batch)](
           int rank, const shape& dims) -> action_generator {
    return [actions = actions_of_batch(rank, dims), dims, batch = 0,
            index = std::size_t{0}]() mutable -> std::optional<action> {
      if (index == actions.size()) {
        index = 0;
        ++batch;
      }
      if (actions.empty() || batch == dims.steps)
        return {};
      auto next = actions[index++];
      next.microbatch += batch * dims.microbatches;
      return next;
    };
  };
}

} // namespace troupe
