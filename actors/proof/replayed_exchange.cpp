// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/replayed_exchange.hpp"

#include "plan/replica_rules.hpp"

#include <algorithm>

namespace troupe {

replayed_exchange::replayed_exchange(const run_plan& plan,
                                     const layer_list<float>& layers, buckets initial,
                                     std::vector<std::vector<shared_access>> histories)
  : parameters_(std::move(initial)),
    pushed_(static_cast<std::size_t>(plan.mesh[axis::data])) {
  const auto& work = *plan.work;
  const int count = static_cast<int>(histories.size());
  for (int i = 0; i < count; ++i) {
    auto& new_share = shares_.emplace_back();
    new_share.which = {i, count};
    new_share.history = std::move(histories[static_cast<std::size_t>(i)]);
    const int states =
      updates_are_by(plan, update_by::itself) ? plan.mesh[axis::data] : 1;
    for (int s = 0; s < states; ++s)
      new_share.optimizers.emplace_back(work.optimizer, layers,
                                        work.batch * plan.dims.steps, account_,
                                        bucket_shares(layers.size(), new_share.which));
  }
}

void replayed_exchange::push(int data, std::int64_t samples, double factor,
                             buckets gradients) {
  update_of(data) = {samples, factor, std::move(gradients), parameters_,
                     std::vector(shares_.size(), 0)};
}

/// Makes the next access in a share's history. Returns false if the history is done, or
/// the data replica's push is missing.
bool replayed_exchange::step(std::size_t which) {
  auto& current_share = shares_[which];
  if (current_share.next == current_share.history.size())
    return false;
  const auto& [data, updates] = current_share.history[current_share.next];
  auto& update = update_of(data);
  if (!update || update->done[which] != (updates ? 0 : 1))
    return false;
  if (updates) {
    auto& states = current_share.optimizers;
    auto& state = states[states.size() == 1 ? 0 : static_cast<std::size_t>(data)];
    stream host_stream;
    state.update_shared(current_share.samples, update->samples, update->factor,
                        readable(update->gradients), writable(parameters_),
                        host_stream);
    current_share.samples += update->samples;
  } else {
    for (std::size_t b = 0; b < parameters_.size(); ++b) {
      const auto size = static_cast<std::int64_t>(parameters_[b].size());
      std::copy(parameters_[b].begin() + current_share.which.begin(size),
                parameters_[b].begin() + current_share.which.end(size),
                update->version[b].begin() + current_share.which.begin(size));
    }
  }
  ++update->done[which];
  ++current_share.next;
  return true;
}

std::optional<replayed_exchange::buckets> replayed_exchange::pull(int data) {
  for (std::size_t s = 0; s < shares_.size(); ++s)
    while (step(s))
      continue;
  auto& update = update_of(data);
  if (std::ranges::any_of(update->done, [](int done) { return done < 2; }))
    return {};
  auto result = std::move(update->version);
  update.reset();
  return result;
}

bool replayed_exchange::finished() const {
  return std::ranges::all_of(shares_,
                             [](const share& s) { return s.next == s.history.size(); });
}

} // namespace troupe
