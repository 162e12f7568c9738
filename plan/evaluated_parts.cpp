// SPDX-License-Identifier: BSD-3-Clause
#include "plan/evaluated_parts.hpp"

namespace troupe {

std::vector<evaluated_part> evaluated_parts(const run_plan& plan,
                                            bool has_local_ranks) {
  std::vector<evaluated_part> result;
  for (int s = 0; s < plan.dims.stages; ++s) {
    const auto where = has_local_ranks
                         ? plan.machine.processor_of(plan.rank_of({0, 0, s, 0}))
                         : processor{};
    if (result.empty() || result.back().where != where)
      result.push_back({.end = 0, .where = where});
    result.back().end = plan.work->first_layers[static_cast<std::size_t>(s) + 1];
  }
  return result;
}

caller_bytes bytes_of_evaluation(const run_plan& plan, bool has_local_ranks) {
  const auto parts = evaluated_parts(plan, has_local_ranks);
  const auto bytes = evaluator::bytes(
    plan.work->whole, evaluation_batch(plan.work->batch), plan.machine.threads, parts);
  caller_bytes result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& where = parts[i].where;
    (where.is_gpu() ? result.of_gpus[where.gpu] : result.of_machine) += bytes[i];
  }
  return result;
}

} // namespace troupe
