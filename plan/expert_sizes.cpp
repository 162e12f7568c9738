// SPDX-License-Identifier: BSD-3-Clause
#include "plan/expert_sizes.hpp"

#include <algorithm>

namespace troupe {

std::int64_t width_of_rows(const run_plan& plan) {
  return plan.work ? plan.work->whole.experts.front().expert->input() : 1;
}

expert_sizes sizes_of_expert(const run_plan& plan, int expert) {
  const auto& expert_layer =
    *plan.work->whole.experts[static_cast<std::size_t>(expert)].expert;
  const auto& options = plan.work->experts;
  std::int64_t most = 0;
  for (const auto& [samples, length] : plan.batches().shapes())
    most = std::max(most, samples * (length > 0 ? length : plan.work->whole.rows));
  expert_sizes result{.rows = options.capacity_of(most),
                      .sources = plan.mesh[axis::expert],
                      .width = expert_layer.input()};
  const auto all_rows = result.rows * result.sources;
  const auto sizes = expert_layer.sizes(all_rows, 1);
  result.stash = padded(all_rows * result.width) + padded(sizes.saved);
  result.split = padded(all_rows * result.width) + padded(sizes.kept);
  // Space for outputs or output gradients, and for gradients of inputs.
  result.scratch = 2 * padded(all_rows * result.width) + padded(sizes.kept);
  result.payload = result.rows * result.width;
  return result;
}

std::int64_t expert_sizes::values(int hosted, int a_layer, int stashes,
                                  int split_slots) const {
  return hosted
           * (stashes * padded(stash) + split_slots * padded(split) + padded(scratch)
              + 2 * sources * padded(payload))
         + 2 * a_layer * padded(payload);
}

} // namespace troupe
