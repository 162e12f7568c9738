#include "actors/pipeline/stage_saver.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

stage_saver::stage_saver(const run_plan& plan, position where,
                         std::shared_ptr<const optimizer> state,
                         const payload_bound& versions, const payload_bound& moments,
                         memory_account& account)
  : state_(std::move(state)),
    of_versions_(pieces_of(plan, where, shared_out::parameters)),
    of_moments_(pieces_of(plan, where, shared_out::optimizer_state)),
    versions_("copies of the versions of " + plan.name_of(where), versions.buffers,
              versions.values, account),
    moments_("copies of the moments of " + plan.name_of(where), moments.buffers,
             moments.values, account) {
  const auto shares = plan.shares_of(where);
  const auto buckets = plan.buckets_of(where);
  for (std::size_t b = 0; b < buckets.size(); ++b)
    firsts_.push_back(
      plan.shares_out(shared_out::parameters) ? shares[b].begin(buckets[b]) : 0);
}

mail::saved stage_saver::copy(const std::vector<aged_version>& versions) {
  mail::saved result{.updates = state_->updates()};
  for (const auto& version : versions) {
    if (of_versions_.empty())
      break;
    result.ages.push_back(version.age);
    auto* to = result.versions.emplace_back(versions_.acquire()).data();
    for (const auto& piece : of_versions_) {
      const auto* const from = version.buckets[piece.bucket].data();
      to = std::copy_n(from + piece.of.offset + piece.begin - firsts_[piece.bucket],
                       piece.values(), to);
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

} // namespace troupe
