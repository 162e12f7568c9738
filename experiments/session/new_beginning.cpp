// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/new_beginning.hpp"

#include "actors/checkpoints/checkpoint_folder.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

std::string last_checkpoint(const checkpoint_options& o) {
  for (const auto& folder : {o.folder, o.resume})
    if (!folder.empty())
      if (const auto all = checkpoints_at(folder); !all.empty())
        return "; the last checkpoint is " + all.front().string();
  return o.folder.empty() ? "" : "; there is no checkpoint yet";
}

new_beginning beginning_behind(const run_result& lost, const run_plan& first,
                               std::shared_ptr<const saved_training> kept,
                               const std::string& folder) {
  new_beginning result{std::move(kept), "", {}};
  const int steps = first.dims.before + first.dims.steps;
  if (first.dims.before > 0)
    result.behind =
      "step " + std::to_string(first.dims.before) + ", from which it was resumed,";
  if (result.from)
    result.behind = "step " + std::to_string(result.from->batches) + ", "
                    + (lost.survives ? "as other data replicas have kept it,"
                                     : "with which it began before,");
  const int here = result.from ? result.from->batches : first.dims.before;
  if (std::ranges::none_of(checkpoints_in(folder), [&](const auto& one) {
        return batches_of(one) > here && batches_of(one) < steps;
      }))
    return result;
  auto found = newest_checkpoint(folder, first.work->whole, steps - 1);
  if (!found) {
    result.passed_over.push_back(found.error());
    return result;
  }
  if (found->saved->batches > here)
    result = {std::move(found->saved), found->folder.string(), {}};
  result.passed_over = std::move(found->passed_over);
  return result;
}

} // namespace troupe
