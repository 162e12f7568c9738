// SPDX-License-Identifier: BSD-3-Clause
#include "actors/updates/shared_parameters.hpp"

#include "kernels/arrays.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"

#include <algorithm>

namespace troupe {

shared_parameters::shared_parameters(const run_plan& plan, position where,
                                     memory_account* account)
  : read_at_(static_cast<std::size_t>(plan.mesh[axis::data])),
    staleness_(static_cast<std::size_t>(plan.mesh[axis::data])),
    keeps_history_(plan.keep.record
                   && (plan.machine.clock == clock_kind::virtual_time
                       || updates_are_by(plan, update_by::servers))) {
  if (account == nullptr)
    return;
  samples_ = plan.batches().preceding_samples;
  sizes_ = buckets_of(plan, where);
  shares_ = state_shares_of(plan, where);
  first_layer_ = static_cast<std::size_t>(
    plan.work->first_layers[static_cast<std::size_t>(where.stage)]);
  for (std::size_t b = 0; b < sizes_.size(); ++b) {
    std::vector<float> whole(static_cast<std::size_t>(sizes_[b]));
    plan.work->weights(first_layer_ + b, whole.data());
    const auto begin = shares_[b].begin(sizes_[b]), end = shares_[b].end(sizes_[b]);
    auto& held = buckets_.emplace_back(end - begin, *account);
    account->use(held.bytes());
    arrays<float>::copy(whole.data() + begin, end - begin, held.data());
  }
}

void shared_parameters::note(int data, bool update) {
  if (keeps_history_)
    history_.push_back({data, update});
}

void shared_parameters::update(int data, std::int64_t samples, double factor,
                               const std::vector<buffer>& gradients, optimizer* state,
                               stream* compute_stream) {
  note(data, true);
  const auto previous_updates = updates_.fetch_add(1, std::memory_order_relaxed);
  const auto first = samples_.fetch_add(samples, std::memory_order_relaxed);
  const auto d = static_cast<std::size_t>(data);
  const auto stale = previous_updates - read_at_[d];
  auto& so_far = staleness_[d];
  so_far.most = std::max(so_far.most, stale);
  so_far.sum += stale;
  ++so_far.updates;
  if (state == nullptr)
    return;
  std::vector<float*> parameters;
  for (const auto& bucket : buckets_)
    parameters.push_back(bucket.data());
  state->update_shared(first, samples, factor, readable(gradients), parameters,
                       *compute_stream);
}

void shared_parameters::read(int data, const std::vector<buffer>& to) {
  note(data, false);
  read_at_[static_cast<std::size_t>(data)] = updates_.load(std::memory_order_relaxed);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    auto* const from = buckets_[b].data();
    auto* const out = to[b].data() + shares_[b].begin(sizes_[b]);
    const auto values = shares_[b].held(sizes_[b]);
    for (std::int64_t i = 0; i < values; ++i)
      out[i] = std::atomic_ref{from[i]}.load(std::memory_order_relaxed);
  }
}

void shared_parameters::put_into(std::vector<std::vector<float>>& network) const {
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    arrays<float>::copy(buckets_[b].data(), shares_[b].held(sizes_[b]),
                        network[first_layer_ + b].data() + shares_[b].begin(sizes_[b]));
}

shared_history history_of(const all_shared_parameters& run_parameters) {
  shared_history result;
  for (const auto& stage_parameters : run_parameters)
    result.push_back(stage_parameters ? stage_parameters->history()
                                      : std::vector<shared_access>{});
  return result;
}

exchange_measures measures_of(const all_shared_parameters& run_parameters, int stages) {
  const auto count = static_cast<std::size_t>(stages);
  std::vector<exchange_staleness> sums(count);
  for (std::size_t i = 0; i < run_parameters.size(); ++i)
    for (const auto& measured : run_parameters[i] ? run_parameters[i]->staleness()
                                                  : std::vector<exchange_staleness>{}) {
      auto& sum = sums[i % count];
      sum.most = std::max(sum.most, measured.most);
      sum.sum += measured.sum;
      sum.updates += measured.updates;
    }
  exchange_measures result;
  for (const auto& sum : sums) {
    result.max.push_back(sum.most);
    result.mean.push_back(
      static_cast<double>(sum.sum)
      / static_cast<double>(std::max<std::int64_t>(sum.updates, 1)));
  }
  return result;
}

} // namespace troupe
