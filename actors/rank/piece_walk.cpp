// SPDX-License-Identifier: BSD-3-Clause
#include "actors/rank/piece_walk.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

letters piece_walk::begin(const appointments& all) {
  letters result;
  for (const auto& a : all)
    for (auto& letter : meetings_.at(a.with).begin(a.occasion))
      result.push_back(std::move(letter));
  return result;
}

letters piece_walk::begin(const action& a, const charge& cost, woven_action what,
                          action_tellers tell) {
  what_ = a;
  cost_ = cost;
  pieces_ = std::move(what.pieces);
  inputs_ = std::move(what.inputs);
  next_ = 0;
  at_work_ = false;
  tell_ = std::move(tell);
  done_ = 0;
  end_ = nothing;
  waits_ = false;
  return begin(what.begins);
}

bool piece_walk::can_go_on() const {
  const auto& p = pieces_[next_];
  return !p.yields && std::ranges::all_of(p.needs, [this](const appointment& a) {
    return is_over(a);
  });
}

/// Whether a piece needs a new grant of the scheduler, after the previous piece ended.
bool piece_walk::stops_before(std::size_t piece) const {
  const auto &last = pieces_[piece - 1], &next = pieces_[piece];
  return last.end != nothing || !last.ends_in.empty() || !next.needs.empty()
         || !next.begins.empty();
}

void piece_walk::add(work& to, piece& p) const {
  work_part part{p.share, std::move(p.run), {}};
  if (tell_.bucket && !p.completes.empty())
    part.over = [tell = tell_.bucket, buckets = std::move(p.completes)] {
      for (const int b : buckets)
        tell(b);
    };
  to.parts.push_back(std::move(part));
}

work piece_walk::next_work(letters& out) {
  auto& first = pieces_[next_];
  const bool costs = first.costs && what_.pair != in_pair::second;
  work result{.kind = costs ? static_cast<int>(what_.what) : op_count,
              .stage = what_.stage,
              .microbatch = what_.microbatch,
              .direction = what_.direction,
              .operations = costs ? cost_.operations : 0,
              .size = cost_.size,
              .begun = done_};
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
    result.launched = std::move(tell_.launched);
  }
  return result;
}

letters piece_walk::end_work() {
  at_work_ = false;
  end_ = ending_;
  return begin(std::exchange(ends_in_, {}));
}

bool piece_walk::resumes() {
  if (!waits_ || !has_more())
    return false;
  pieces_[next_].yields = false;
  if (!can_go_on())
    return false;
  waits_ = false;
  return true;
}

std::optional<absence> piece_walk::waits_for() const {
  if (has_more())
    for (const auto& a : pieces_[next_].needs)
      if (!is_over(a))
        return meetings_.at(a.with).waits_for();
  return {};
}

} // namespace troupe
