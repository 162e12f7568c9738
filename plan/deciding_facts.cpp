// SPDX-License-Identifier: BSD-3-Clause
#include "plan/deciding_facts.hpp"

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

bool depends_on_microbatches(const run_plan& plan) {
  const auto& e = plan.work->experts;
  constexpr std::int64_t rows = 1 << 20;
  const bool counts_rows =
    !plan.work->whole.experts.empty() && (e.balance != 0 || e.capacity_of(rows) < rows);
  return counts_rows || (plan.uneven && plan.uneven->lengths.size() > 1)
         || !plan.sch.weights.flushes;
}

std::vector<std::int64_t> uneven_sizes(const run_plan& plan) {
  if (!plan.uneven)
    return {};
  const auto batches = plan.batches();
  const batching even{batches.batch, batches.microbatches};
  std::vector<std::int64_t> usual;
  for (int k = 0; k < even.microbatches; ++k)
    usual.push_back(even.samples_of(k));
  return plan.uneven->samples == usual ? std::vector<std::int64_t>{}
                                       : plan.uneven->samples;
}

} // namespace troupe
