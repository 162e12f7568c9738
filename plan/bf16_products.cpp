// SPDX-License-Identifier: BSD-3-Clause
#include "plan/bf16_products.hpp"

#include <algorithm>

namespace troupe {

bool makes_bf16_by_cpu(precision products, const std::vector<processor>& of_ranks) {
  return products == precision::bf16
         && (of_ranks.empty() || !std::ranges::all_of(of_ranks, &processor::is_gpu));
}

bool makes_bf16_by_cpu(const run_plan& plan) {
  std::vector<processor> of_ranks;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    of_ranks.push_back(plan.machine.processor_of(rank));
  return plan.work && makes_bf16_by_cpu(plan.work.stored(), of_ranks);
}

} // namespace troupe
