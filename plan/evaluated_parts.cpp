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

} // namespace troupe
