// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage_saver.hpp"

#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_pools.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

stage_copies::stage_copies(const run_plan& plan, position where,
                           std::shared_ptr<const optimizer> state, savers saved_by,
                           const copies_bound& bound, memory_account& account)
  : state_(std::move(state)),
    version_pieces_(pieces_of(plan, where, shared_out::parameters, saved_by)),
    state_pieces_(pieces_of(plan, where, shared_out::optimizer_state, saved_by)),
    versions_("copies of the versions of " + plan.name_of(where),
              bound.versions.buffers, bound.versions.values, account),
    state_arrays_("copies of the state arrays of " + plan.name_of(where),
                  bound.state.buffers, bound.state.values, account) {
  const auto shares = shares_of(plan, where);
  const auto buckets = buckets_of(plan, where);
  for (std::size_t b = 0; b < buckets.size(); ++b)
    firsts_.push_back(
      shares_out(plan, shared_out::parameters) ? shares[b].begin(buckets[b]) : 0);
}

mail::saved stage_copies::copy(const std::vector<aged_version>& versions) {
  mail::saved result{.updates = state_->updates()};
  for (const auto& version : versions) {
    if (version_pieces_.empty())
      break;
    result.ages.push_back(version.age);
    auto* to = result.versions.emplace_back(versions_.acquire()).data();
    for (const auto& piece : version_pieces_) {
      const auto first = piece.begin - firsts_[piece.bucket];
      to = copy_values(piece.part, version.buckets[piece.bucket], first,
                       first + piece.values(), to);
    }
  }
  for (int m = 0; m < state_->state_arrays() && !state_pieces_.empty(); ++m) {
    auto* to = result.state.emplace_back(state_arrays_.acquire()).data();
    for (const auto& piece : state_pieces_) {
      const auto first = piece.part.offset + piece.begin;
      state_->copy_state(m, piece.bucket, first, first + piece.values(), to);
      to += piece.values();
    }
  }
  return result;
}

stage_saver::stage_saver(const run_plan& plan, position where,
                         const std::shared_ptr<const optimizer>& state,
                         memory_account& account)
  : where_(where),
    checkpoint_copies_(plan, where, state, savers::first_holder,
                       saved_copies(plan, where), account),
    step_copies_(plan, where, state, savers::every_holder,
                 kept_copies(plan, where).times(2), account) {
  // nop
}

mail::saved stage_saver::copy(int batches, const std::vector<aged_version>& versions) {
  auto result = checkpoint_copies_.copy(versions);
  result.batches = batches;
  result.where = where_;
  return result;
}

void stage_saver::keep(int batches, const std::vector<aged_version>& versions) {
  while (kept_.size() > 1)
    kept_.pop_front();
  auto& kept = kept_.emplace_back(step_copies_.copy(versions));
  kept.batches = batches;
  kept.where = where_;
}

mail::saved stage_saver::fetch_kept_state(int batches) const {
  for (const auto& kept : kept_)
    if (kept.batches == batches)
      return kept;
  return {.batches = batches, .where = where_};
}

} // namespace troupe
