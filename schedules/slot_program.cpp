// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/slot_program.hpp"

#include <algorithm>

namespace troupe {

slot_program::slot_program(const schedule& sch, const shape& dims, int rank)
  : schedule_(sch),
    slot_of_(std::get<slot_formula>(sch.order)),
    dims_(dims),
    hosted_(hosted_by(sch.where, dims, rank)) {
  // nop
}

std::optional<action> slot_program::operator()() {
  if (next_update_ < updates_.size())
    return updates_[next_update_++];
  if (streams_.empty()) {
    if (batch_ == (schedule_.streams ? 1 : dims_.steps))
      return {};
    begin_batch();
  }
  updates_.clear();
  next_update_ = 0;
  const auto s = std::ranges::min_element(streams_, {}, &stream::slot);
  const action next{s->operation, s->where.direction, s->where.stage, index_of(*s)};
  ++s->k;
  if (adds_gradient(next.op) && update_is_due(s->k))
    updates_.push_back({op::update, next.direction, next.stage, next.microbatch});
  if (s->k < microbatches_of_stream())
    s->slot = slot_of_(s->operation, s->where.stage, s->k, dims_);
  else
    streams_.erase(s);
  if (streams_.empty())
    end_batch();
  return next;
}

void slot_program::begin_batch() {
  const auto ops = schedule_.splits_backward
                     ? std::vector{op::forward, op::input_gradient, op::weight_gradient}
                     : std::vector{op::forward, op::backward};
  for (const auto& where : hosted_)
    for (const op operation : ops)
      streams_.push_back(
        {operation, where, 0, slot_of_(operation, where.stage, 0, dims_)});
}

void slot_program::end_batch() {
  if (!schedule_.streams)
    for (const auto& where : hosted_)
      updates_.push_back({op::update, where.direction, where.stage,
                          (batch_ + 1) * dims_.microbatches - 1});
  ++batch_;
}

int slot_program::microbatches_of_stream() const {
  const int total = microbatches_of_direction(schedule_, dims_);
  return schedule_.streams ? total : total / dims_.steps;
}

// Without a flush, an update follows the last backward of each minibatch.
bool slot_program::update_is_due(int backwards) const {
  return schedule_.streams
         && (backwards % update_size(schedule_, dims_) == 0
             || backwards == microbatches_of_stream());
}

int slot_program::index_of(const stream& s) const {
  const int k = schedule_.streams ? s.k : batch_ * microbatches_of_stream() + s.k;
  return microbatch_of(schedule_.where, dims_, s.where.direction, k);
}

} // namespace troupe
