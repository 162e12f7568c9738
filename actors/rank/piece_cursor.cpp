// SPDX-License-Identifier: BSD-3-Clause
#include "actors/rank/piece_cursor.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

meeting_messages piece_cursor::begin(const meeting_steps& steps) {
  meeting_messages result;
  for (const auto& a : steps)
    for (auto& message : meetings_.meeting_of(a.kind).begin(a.index))
      result.push_back(std::move(message));
  return result;
}

meeting_messages piece_cursor::begin(const action& a, const charge& cost,
                                     woven_action woven, action_callbacks callbacks) {
  action_ = a;
  cost_ = cost;
  pieces_ = std::move(woven.pieces);
  inputs_ = std::move(woven.inputs);
  next_ = 0;
  at_work_ = false;
  callbacks_ = std::move(callbacks);
  done_ = 0;
  end_ = nothing;
  waits_ = false;
  return begin(woven.begins);
}

bool piece_cursor::can_resume() const {
  const auto& p = pieces_[next_];
  return !p.yields && std::ranges::all_of(p.needs, [this](const meeting_step& a) {
    return is_over(a);
  });
}

/// Whether a piece needs a new grant of the scheduler, after the previous piece ended.
bool piece_cursor::stops_before(std::size_t piece) const {
  const auto &last = pieces_[piece - 1], &next = pieces_[piece];
  return last.end != nothing || !last.ends_in.empty() || !next.needs.empty()
         || !next.begins.empty();
}

void piece_cursor::add(work& to, piece& p) const {
  work_part part{p.share, std::move(p.run), {}};
  if (callbacks_.bucket && !p.completes.empty())
    part.on_done = [on_bucket = callbacks_.bucket, buckets = std::move(p.completes)] {
      for (const int b : buckets)
        on_bucket(b);
    };
  to.parts.push_back(std::move(part));
}

work piece_cursor::next_work(meeting_messages& out) {
  auto& first = pieces_[next_];
  const bool costs = first.costs && action_.pair != in_pair::second;
  work result{.kind = costs ? static_cast<int>(action_.op) : op_count,
              .stage = action_.stage,
              .microbatch = action_.microbatch,
              .direction = action_.direction,
              .operations = costs ? cost_.operations : 0,
              .size = cost_.size,
              .start_share = done_};
  if (costs)
    result.also = cost_.also;
  result.inputs = std::exchange(inputs_, {});
  out = begin(first.begins);
  if (whole_action(first)) {
    result.run = std::move(first.run);
    ++next_;
  } else
    do
      add(result, pieces_[next_++]);
    while (has_more() && !stops_before(next_));
  done_ = result.done();
  auto& last = pieces_[next_ - 1];
  ending_ = last.end;
  ends_in_ = std::move(last.ends_in);
  at_work_ = true;
  if (!has_more()) {
    std::vector<piece>{}.swap(pieces_);
    result.launched = std::move(callbacks_.launched);
  }
  return result;
}

meeting_messages piece_cursor::end_work() {
  at_work_ = false;
  end_ = ending_;
  return begin(std::exchange(ends_in_, {}));
}

bool piece_cursor::resumes() {
  if (!waits_ || !has_more())
    return false;
  pieces_[next_].yields = false;
  if (!can_resume())
    return false;
  waits_ = false;
  return true;
}

std::optional<missing_peer> piece_cursor::waits_for() const {
  if (has_more())
    for (const auto& a : pieces_[next_].needs)
      if (!is_over(a))
        return meetings_.meeting_of(a.kind).waits_for();
  return {};
}

} // namespace troupe
