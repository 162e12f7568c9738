// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/restart_point.hpp"

#include "actors/checkpoints/checkpoint_folder.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe {

std::string last_checkpoint(const checkpoint_options& o) {
  try {
    for (const auto& folder : {o.folder, o.resume})
      if (!folder.empty())
        if (const auto checkpoints = checkpoints_at(folder); !checkpoints.empty())
          return "; the last checkpoint is " + checkpoints.front().string();
  } catch (const std::runtime_error& error) { // the run's results stay
    return std::string{"; the last checkpoint is unknown: "} + error.what();
  }
  return o.folder.empty() ? "" : "; there is no checkpoint yet";
}

restart_point find_restart_point(const run_result& lost, const run_plan& first,
                                 std::shared_ptr<const training_state> kept,
                                 const std::string& folder) {
  restart_point result{std::move(kept), "", {}};
  const int steps = first.dims.batches_before + first.dims.steps;
  if (first.dims.batches_before > 0)
    result.description =
      "step " + std::to_string(first.dims.batches_before) + ", where --resume began,";
  if (result.from)
    result.description = "step " + std::to_string(result.from->batches) + ", "
                         + (lost.recovered ? "kept by other data replicas,"
                                           : "where the last start began,");
  const int batches = result.from ? result.from->batches : first.dims.batches_before;
  try {
    if (std::ranges::none_of(checkpoints_in(folder), [&](const auto& checkpoint) {
          return batches_of(checkpoint) > batches && batches_of(checkpoint) < steps;
        }))
      return result;
    auto newest = newest_checkpoint(folder, first.work->whole, steps - 1);
    if (!newest) {
      result.passed_over.push_back(newest.error());
      return result;
    }
    if (newest->saved->batches > batches)
      result = {std::move(newest->saved), newest->folder.string(), {}};
    result.passed_over = std::move(newest->passed_over);
  } catch (const std::runtime_error& error) { // the folder cannot be read now
    result.passed_over.emplace_back(error.what());
  }
  return result;
}

} // namespace troupe
