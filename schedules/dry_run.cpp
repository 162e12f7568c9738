// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/dry_run.hpp"

#include <algorithm>

namespace troupe {

dry_run::dry_run(const schedule& sch, const shape& dims, bool records)
  : dims_(dims),
    done_(static_cast<std::size_t>(dims.stages)
          * static_cast<std::size_t>(dims.total())),
    stages_(static_cast<std::size_t>(dims.stages)
            * static_cast<std::size_t>(directions_of(sch.where))),
    held_(static_cast<std::size_t>(ranks_of(sch.where, dims))),
    within_pair_(held_.size()) {
  if (!records)
    return;
  record_.emplace(held_.size(), static_cast<int>(held_.size()) < dims.stages);
  ends_.resize(done_.size());
}

std::optional<action> dry_run::maker_of(const action& a) const {
  if (a.op == op::forward)
    return a.stage == 0 ? std::nullopt
                        : std::optional{
                          action{op::forward, a.direction, a.stage - 1, a.microbatch}};
  if (!goes_back(a.op))
    return {};
  if (a.stage == dims_.stages - 1)
    return action{op::forward, a.direction, a.stage, a.microbatch};
  return action{op::backward, a.direction, a.stage + 1, a.microbatch};
}

bool dry_run::has_input(const action& a) const {
  const auto maker = maker_of(a);
  return !maker
         || (done(maker->stage, maker->microbatch)
             & (maker->op == op::forward ? f : dx))
              != 0;
}

void dry_run::apply(const action& a, int rank) {
  if (record_)
    note(a, rank);
  within_pair_[static_cast<std::size_t>(rank)] = a.pair == in_pair::first;
  auto& stage = stages_[index({a.direction, a.stage})];
  if (a.op == op::update) {
    ++stage.versions;
    stage.summed = 0;
    return;
  }
  auto& flags = done_[index(a.stage, a.microbatch)];
  auto& held = held_[static_cast<std::size_t>(rank)];
  if (a.op == op::forward) {
    flags |= f;
    stage.newest_forwarded = std::max(stage.newest_forwarded, a.microbatch);
    ++held;
  }
  if (goes_back(a.op))
    flags |= dx;
  if (adds_gradient(a.op)) {
    flags |= dw;
    ++stage.summed;
    stage.last_summed = a.microbatch;
    stage.newest_summed = std::max(stage.newest_summed, a.microbatch);
    --held;
  }
}

void dry_run::note(const action& a, int rank) {
  const auto maker = maker_of(a);
  const std::int64_t ready =
    maker ? ends_[index(maker->stage, maker->microbatch)][maker->op != op::forward] : 0;
  const auto end = record_->run(rank, a, ready);
  if (a.op == op::forward)
    ends_[index(a.stage, a.microbatch)][0] = end;
  if (goes_back(a.op))
    ends_[index(a.stage, a.microbatch)][1] = end;
}

} // namespace troupe
