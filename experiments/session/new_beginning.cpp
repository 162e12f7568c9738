#include "experiments/session/new_beginning.hpp"

#include "actors/checkpoints/checkpoint_folder.hpp"

#include <utility>

namespace troupe {

std::string last_checkpoint(const std::string& folder) {
  if (folder.empty())
    return {};
  const auto all = checkpoints_in(folder);
  return all.empty() ? "; there is no checkpoint yet"
                     : "; the last checkpoint is " + all.front().string();
}

new_beginning beginning_behind(const run_result& lost, const run_plan& first,
                               std::shared_ptr<const saved_training> kept,
                               const std::string& folder) {
  new_beginning result{std::move(kept), ""};
  const int steps = first.dims.before + first.dims.steps;
  if (result.from)
    result.behind = "step " + std::to_string(result.from->batches) + ", "
                    + (lost.survives ? "as other data replicas have kept it,"
                                     : "with which it began before,");
  const auto all = checkpoints_in(folder); // the newest first
  if (all.empty() || (result.from && batches_of(all.front()) <= result.from->batches))
    return result;
  auto found = newest_checkpoint(folder, first.work->whole);
  if (found && found->facts.batches < steps
      && (!result.from || found->saved->batches > result.from->batches))
    result = {std::move(found->saved), found->folder.string()};
  return result;
}

} // namespace troupe
