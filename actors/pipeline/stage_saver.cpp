// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage_saver.hpp"

#include "actors/pipeline/stage_pools.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

stage_copies::stage_copies(const run_plan& plan, position where,
                           std::shared_ptr<const optimizer> state, savers who,
                           const copies_bound& room, memory_account& account)
  : state_(std::move(state)),
    of_versions_(pieces_of(plan, where, shared_out::parameters, who)),
    of_moments_(pieces_of(plan, where, shared_out::optimizer_state, who)),
    versions_("copies of the versions of " + plan.name_of(where), room.versions.buffers,
              room.versions.values, account),
    moments_("copies of the moments of " + plan.name_of(where), room.moments.buffers,
             room.moments.values, account) {
  const auto shares = plan.shares_of(where);
  const auto buckets = plan.buckets_of(where);
  for (std::size_t b = 0; b < buckets.size(); ++b)
    firsts_.push_back(
      plan.shares_out(shared_out::parameters) ? shares[b].begin(buckets[b]) : 0);
}

mail::saved stage_copies::copy(const std::vector<aged_version>& versions) {
  mail::saved result{.updates = state_->updates()};
  for (const auto& version : versions) {
    if (of_versions_.empty())
      break;
    result.ages.push_back(version.age);
    auto* to = result.versions.emplace_back(versions_.acquire()).data();
    for (const auto& piece : of_versions_) {
      const auto first = piece.begin - firsts_[piece.bucket];
      to = copy_values(piece.of, version.buckets[piece.bucket], first,
                       first + piece.values(), to);
    }
  }
  for (int m = 0; m < state_->moments() && !of_moments_.empty(); ++m) {
    auto* to = result.moments.emplace_back(moments_.acquire()).data();
    for (const auto& piece : of_moments_) {
      const auto first = piece.of.offset + piece.begin;
      state_->copy_moment(m, piece.bucket, first, first + piece.values(), to);
      to += piece.values();
    }
  }
  return result;
}

stage_saver::stage_saver(const run_plan& plan, position where,
                         const std::shared_ptr<const optimizer>& state,
                         memory_account& account)
  : where_(where),
    of_checkpoints_(plan, where, state, savers::first, saved_copies(plan, where),
                    account),
    of_steps_(plan, where, state, savers::all, kept_copies(plan, where).times(2),
              account) {
  // nop
}

mail::saved stage_saver::copy(int batches, const std::vector<aged_version>& versions) {
  auto result = of_checkpoints_.copy(versions);
  result.batches = batches;
  result.where = where_;
  return result;
}

void stage_saver::keep(int batches, const std::vector<aged_version>& versions) {
  while (kept_.size() > 1)
    kept_.pop_front();
  auto& one = kept_.emplace_back(of_steps_.copy(versions));
  one.batches = batches;
  one.where = where_;
}

mail::saved stage_saver::recall(int batches) const {
  for (const auto& one : kept_)
    if (one.batches == batches)
      return one;
  return {.batches = batches, .where = where_};
}

} // namespace troupe
