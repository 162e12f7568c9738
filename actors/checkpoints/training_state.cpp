// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/training_state.hpp"

#include "models/optimizer_catalog.hpp"

#include <algorithm>

namespace troupe {

void resume_from(std::shared_ptr<const training_state> saved, run_plan& plan) {
  const auto source_of = [&](const whole_buckets& from) -> weight_source {
    return [saved, &from](std::size_t layer, float* bucket) {
      std::ranges::copy(from[layer], bucket);
    };
  };
  auto& work = *plan.work;
  plan.dims.batches_before = saved->batches;
  plan.dims.older = static_cast<int>(saved->older.size());
  work.weights = source_of(saved->parameters);
  work.earlier = {.updates = saved->updates};
  for (const auto& version : saved->older)
    work.earlier.older.push_back(source_of(version));
  for (const auto& array : saved->state)
    work.earlier.state.push_back({array.name, source_of(array.values)});
}

namespace {

/// "the state mean, square"
std::string list_of(const std::vector<std::string>& names) {
  std::string result;
  for (const auto& name : names)
    result += (result.empty() ? "the state " : ", ") + name;
  return names.empty() ? "no state" : result;
}

} // namespace

std::string state_error(const run_plan& plan) {
  if (plan.dims.batches_before == 0)
    return {};
  std::vector<std::string> saved;
  for (const auto& array : plan.work->earlier.state)
    saved.push_back(array.name);
  const auto needed = state_names(plan.work->optimizer);
  const bool is_named = saved.empty() || !saved.front().starts_with("moment-");
  if (is_named ? saved == needed : saved.size() == needed.size())
    return {};
  return "--resume: the checkpoint's optimizer has " + list_of(saved)
         + ", and the run's optimizer has " + list_of(needed)
         + ": give the checkpoint's --optimizer, and for sgd a --momentum that is 0 in "
           "both or in none";
}

} // namespace troupe
