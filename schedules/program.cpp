#include "schedules/program.hpp"

#include <algorithm>

namespace troupe {

program::program(const schedule& sch, const shape& dims, int rank)
  : schedule_(sch), dims_(dims), rank_(rank) {
  // nop
}

const action* program::front() {
  if (at_ == ready_.size())
    generate();
  return at_ < ready_.size() ? &ready_[at_] : nullptr;
}

void program::generate() {
  ready_.clear();
  at_ = 0;
  if (const auto* batch_of = std::get_if<explicit_program>(&schedule_.order))
    generate_batch(*batch_of);
  else
    generate_one(std::get<slot_formula>(schedule_.order));
}

void program::generate_batch(const explicit_program& batch_of) {
  if (batch_ == dims_.steps)
    return;
  ready_ = batch_of(rank_, dims_);
  for (auto& a : ready_)
    a.microbatch += batch_ * dims_.microbatches;
  ++batch_;
}

void program::generate_one(slot_formula slot_of) {
  if (streams_.empty()) {
    if (batch_ == (schedule_.streams ? 1 : dims_.steps))
      return;
    begin_batch(slot_of);
  }
  const auto s = std::ranges::min_element(streams_, {}, &stream::slot);
  const int microbatch = index_of(*s);
  ready_.push_back({s->what, s->where.replica, s->where.stage, microbatch});
  ++s->k;
  if (s->what == op::backward && update_is_due(s->k))
    ready_.push_back({op::update, s->where.replica, s->where.stage, microbatch});
  if (s->k < microbatches_of_stream())
    s->slot = slot_of(s->what, s->where.stage, s->k, dims_);
  else
    streams_.erase(s);
  if (streams_.empty())
    end_batch();
}

void program::begin_batch(slot_formula slot_of) {
  for (const auto& where : hosted_by(schedule_.where, dims_, rank_))
    for (const op what : {op::forward, op::backward})
      streams_.push_back({what, where, 0, slot_of(what, where.stage, 0, dims_)});
}

void program::end_batch() {
  if (!schedule_.streams)
    for (const auto& where : hosted_by(schedule_.where, dims_, rank_))
      ready_.push_back({op::update, where.replica, where.stage,
                        (batch_ + 1) * dims_.microbatches - 1});
  ++batch_;
}

int program::microbatches_of_stream() const {
  const int all = microbatches_of_replica(schedule_, dims_);
  return schedule_.streams ? all : all / dims_.steps;
}

// Without a flush, an update follows the last backward of its minibatch.
bool program::update_is_due(int backwards) const {
  return schedule_.streams
         && (backwards % update_size(schedule_, dims_) == 0
             || backwards == microbatches_of_stream());
}

int program::index_of(const stream& s) const {
  const int k = schedule_.streams ? s.k : batch_ * microbatches_of_stream() + s.k;
  return microbatch_of(schedule_.where, dims_, s.where.replica, k);
}

std::vector<action> generate(const schedule& sch, const shape& dims, int rank) {
  std::vector<action> result;
  program p{sch, dims, rank};
  for (; p.front() != nullptr; p.pop())
    result.push_back(*p.front());
  return result;
}

} // namespace troupe
