// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/replayed_exchange.hpp"

#include <algorithm>

namespace troupe {

replayed_exchange::replayed_exchange(const run_plan& plan,
                                     const layer_list<float>& layers, buckets initial,
                                     std::vector<std::vector<shared_access>> histories)
  : parameters_(std::move(initial)), pushed_(static_cast<std::size_t>(plan.data)) {
  const auto& work = *plan.work;
  const int count = static_cast<int>(histories.size());
  for (int i = 0; i < count; ++i) {
    auto& one = shares_.emplace_back();
    one.which = {i, count};
    one.history = std::move(histories[static_cast<std::size_t>(i)]);
    const int states = plan.updates_are_by(update_by::itself) ? plan.data : 1;
    for (int s = 0; s < states; ++s)
      one.optimizers.emplace_back(work.optimizer, layers, work.batch * plan.dims.steps,
                                  account_, bucket_shares(layers.size(), one.which));
  }
}

void replayed_exchange::push(int data, std::int64_t samples, double factor,
                             buckets gradients) {
  of(data) = {samples, factor, std::move(gradients), parameters_,
              std::vector(shares_.size(), 0)};
}

/// Makes the next access in a share's history. Returns false if the history is done, or
/// the data replica's push is missing.
bool replayed_exchange::step(std::size_t which) {
  auto& here = shares_[which];
  if (here.next == here.history.size())
    return false;
  const auto& [data, updates] = here.history[here.next];
  auto& what = of(data);
  if (!what || what->done[which] != (updates ? 0 : 1))
    return false;
  if (updates) {
    auto& states = here.optimizers;
    auto& state = states[states.size() == 1 ? 0 : static_cast<std::size_t>(data)];
    stream on;
    state.update_shared(here.samples, what->samples, what->factor,
                        readable(what->gradients), writable(parameters_), on);
    here.samples += what->samples;
  } else {
    for (std::size_t b = 0; b < parameters_.size(); ++b) {
      const auto size = static_cast<std::int64_t>(parameters_[b].size());
      std::copy(parameters_[b].begin() + here.which.begin(size),
                parameters_[b].begin() + here.which.end(size),
                what->version[b].begin() + here.which.begin(size));
    }
  }
  ++what->done[which];
  ++here.next;
  return true;
}

std::optional<replayed_exchange::buckets> replayed_exchange::pull(int data) {
  for (std::size_t s = 0; s < shares_.size(); ++s)
    while (step(s))
      continue;
  auto& what = of(data);
  if (std::ranges::any_of(what->done, [](int done) { return done < 2; }))
    return {};
  auto result = std::move(what->version);
  what.reset();
  return result;
}

bool replayed_exchange::over() const {
  return std::ranges::all_of(shares_,
                             [](const share& s) { return s.next == s.history.size(); });
}

} // namespace troupe
