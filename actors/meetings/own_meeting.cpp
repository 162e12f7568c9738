// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/own_meeting.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace troupe {

std::string name_of_own_meeting(int stage, int replica) {
  return "the own meeting of stage " + std::to_string(stage) + " in data replica "
         + std::to_string(replica);
}

exchange_place place_of_own(const run_plan& plan, int stage, int replica) {
  exchange_place result{stage, replica, plan.data};
  if (!plan.work)
    return result;
  int array = 0;
  for (const auto& layer : plan.layers_of({replica, 0, stage})) {
    for (const auto& p : layer->parameters())
      result.parameters.push_back({p.name, p.dims, array, p.offset, p.values()});
    ++array;
  }
  return result;
}

own_meeting::own_meeting(const run_plan& plan, position where)
  : plan_(&plan),
    where_(where),
    own_(plan.own_exchange(place_of_own(plan, where.stage, where.data))),
    values_(plan.buckets_of(where)) {
  // nop
}

void own_meeting::expect(const std::vector<buffer>& gradients) {
  gradients_.clear();
  for (std::size_t b = 0; b < gradients.size(); ++b)
    gradients_.emplace_back(gradients[b].data(), static_cast<std::size_t>(values_[b]));
}

letters own_meeting::begin(int) {
  begun_ = true;
  auto result = sent(own_->begin(gradients_));
  auto answers = take_early();
  std::ranges::move(answers, std::back_inserter(result));
  return result;
}

letters own_meeting::take(mail::letter what) {
  auto& one = std::get<mail::own_letter>(what.what);
  if (one.update < update_ || (begun_ && one.update == update_ && over(exchanged)))
    throw std::logic_error("data replica " + std::to_string(one.from)
                           + " sent a message to a user's meeting that has ended here");
  if (one.update != update_) {
    later_.push_back(std::move(one));
    return {};
  }
  early_.push_back(std::move(one));
  return begun_ ? take_early() : letters{};
}

letters own_meeting::take_early() {
  letters result;
  while (!early_.empty()) {
    const auto one = std::move(early_.front());
    early_.pop_front();
    auto answers = sent(own_->take(one.from, one.what));
    std::ranges::move(answers, std::back_inserter(result));
  }
  return result;
}

letters own_meeting::sent(std::vector<exchange_letter> all) const {
  letters result;
  for (auto& one : all) {
    if (one.to < 0 || one.to >= plan_->data || one.to == where_.data)
      throw std::logic_error("own_exchange writes to data replica "
                             + std::to_string(one.to) + ": there are 0 to "
                             + std::to_string(plan_->data - 1)
                             + ", and it is one of them itself");
    auto to = where_;
    to.data = one.to;
    const auto bytes = std::ssize(one.what);
    result.push_back(
      {.to = {role::optimizer_shard, to},
       .about = meeting_kind::own,
       .what = mail::own_letter{update_, where_.data, std::move(one.what)},
       .kind = traffic::gradients,
       .bytes = bytes});
  }
  return result;
}

void own_meeting::next_update() {
  ++update_;
  begun_ = false;
  for (auto& one : std::exchange(later_, {}))
    (one.update == update_ ? early_ : later_).push_back(std::move(one));
}

std::optional<absence> own_meeting::waits_for() const {
  if (!begun_ || own_->over())
    return {};
  auto what = own_->waits_for();
  auto own = name_of_own_meeting(where_.stage, where_.data)
             + " has begun and is not over: it waits for " + what;
  return absence{std::move(what), "", std::move(own)};
}

} // namespace troupe
