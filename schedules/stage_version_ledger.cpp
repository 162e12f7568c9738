// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/stage_version_ledger.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

stage_version_ledger::stage_version_ledger(const schedule& sch, const shape& dims,
                                           hosted_stage where)
  : schedule_(&sch), dims_(dims), where_(where), versions_(dims.older), in_flight_(4) {
  versions_.need_from(oldest_version_needed(sch, dims, where, 0));
}

bool stage_version_ledger::can_forward(int microbatch) const {
  const auto version = version_read(*schedule_, dims_, where_.stage, microbatch);
  return !version || *version <= newest_made_;
}

int stage_version_ledger::begin_forward(int microbatch) {
  while (in_flight_[static_cast<std::size_t>(microbatch) & (in_flight_.size() - 1)]
           .microbatch
         >= 0)
    grow();
  const auto fixed = version_read(*schedule_, dims_, where_.stage, microbatch);
  const int version = fixed.value_or(newest());
  if (fixed)
    versions_.hold(version);
  in_flight_[static_cast<std::size_t>(microbatch) & (in_flight_.size() - 1)] = {
    microbatch, version};
  ++forwarded_;
  versions_.need_from(oldest_version_needed(*schedule_, dims_, where_, forwarded_));
  peak_held_ = std::max(peak_held_, ++held_);
  return version;
}

int stage_version_ledger::version_for_backward(int microbatch) const {
  const auto& held = entry_of(microbatch);
  return schedule_->weights.reads ? held.version : newest();
}

void stage_version_ledger::end_backward(int microbatch) {
  auto& ended = entry_of(microbatch);
  if (schedule_->weights.reads)
    versions_.release(ended.version);
  oldest_read_ = summed_ == 0 ? ended.version : std::min(oldest_read_, ended.version);
  sum_of_reads_ += ended.version;
  ++summed_;
  ended.microbatch = -1;
  --held_;
}

update_facts stage_version_ledger::begin_update() {
  const int from = newest();
  const update_facts result{
    .from = from,
    .in_place = versions_.advance(),
    .gradients = summed_,
    .stalest = from - oldest_read_,
    .staleness = std::int64_t{from} * summed_ - sum_of_reads_,
  };
  summed_ = 0;
  sum_of_reads_ = 0;
  return result;
}

int stage_version_ledger::oldest_held() const {
  int oldest = -1;
  for (const auto& e : in_flight_)
    if (e.microbatch >= 0 && (oldest < 0 || e.microbatch < oldest))
      oldest = e.microbatch;
  return oldest;
}

stage_version_ledger::entry& stage_version_ledger::entry_of(int microbatch) {
  return const_cast<entry&>(std::as_const(*this).entry_of(microbatch));
}

const stage_version_ledger::entry&
stage_version_ledger::entry_of(int microbatch) const {
  const auto& e =
    in_flight_[static_cast<std::size_t>(microbatch) & (in_flight_.size() - 1)];
  if (e.microbatch != microbatch)
    throw std::logic_error("microbatch " + std::to_string(microbatch)
                           + " has not been forwarded by stage "
                           + std::to_string(where_.stage));
  return e;
}

// Doubles the table. begin_forward() repeats this until the entry of the new microbatch
// is free.
void stage_version_ledger::grow() {
  std::vector<entry> larger(in_flight_.size() * 2);
  for (const auto& e : in_flight_)
    if (e.microbatch >= 0)
      larger[static_cast<std::size_t>(e.microbatch) & (larger.size() - 1)] = e;
  in_flight_ = std::move(larger);
}

} // namespace troupe
