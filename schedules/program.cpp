#include "schedules/program.hpp"

#include "schedules/slot_program.hpp"

#include <cstddef>
#include <utility>

namespace troupe {

namespace {

action_generator generator_of(const schedule& sch, const shape& dims, int rank) {
  if (const auto* start = std::get_if<explicit_program>(&sch.order))
    return (*start)(rank, dims);
  return slot_program{sch, dims, rank};
}

} // namespace

program::program(const schedule& sch, const shape& dims, int rank)
  : next_(generator_of(sch, dims, rank)), front_(next_()) {
  // nop
}

std::vector<action> generate(const schedule& sch, const shape& dims, int rank) {
  std::vector<action> result;
  for (program p{sch, dims, rank}; p.front() != nullptr; p.pop())
    result.push_back(*p.front());
  return result;
}

explicit_program batch_by_batch(
  std::function<std::vector<action>(int rank, const shape& dims)> actions_of_batch) {
  return [actions_of_batch = std::move(actions_of_batch)](
           int rank, const shape& dims) -> action_generator {
    return [actions = actions_of_batch(rank, dims), dims, batch = 0,
            at = std::size_t{0}]() mutable -> std::optional<action> {
      if (at == actions.size()) {
        at = 0;
        ++batch;
      }
      if (actions.empty() || batch == dims.steps)
        return {};
      auto next = actions[at++];
      next.microbatch += batch * dims.microbatches;
      return next;
    };
  };
}

} // namespace troupe
