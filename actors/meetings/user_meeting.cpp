// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/user_meeting.hpp"

#include "plan/stage_buckets.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace troupe {

std::string name_of_user_meeting(int stage, int replica) {
  return "the user_exchange of stage " + std::to_string(stage) + " in data replica "
         + std::to_string(replica);
}

exchange_member user_exchange_member(const run_plan& plan, int stage, int replica) {
  exchange_member result{stage, replica, plan.mesh[axis::data]};
  if (!plan.work)
    return result;
  int array = 0;
  for (const auto& layer : layers_of(plan, {replica, 0, stage})) {
    for (const auto& p : layer->parameters())
      result.parameters.push_back({p.name, p.dims, array, p.offset, p.values()});
    ++array;
  }
  return result;
}

user_meeting::user_meeting(const run_plan& plan, position where)
  : plan_(&plan),
    where_(where),
    exchange_(plan.user_exchange(user_exchange_member(plan, where.stage, where.data))),
    values_(buckets_of(plan, where)) {
  // nop
}

void user_meeting::expect(const std::vector<buffer>& gradients) {
  gradients_.clear();
  for (std::size_t b = 0; b < gradients.size(); ++b)
    gradients_.emplace_back(gradients[b].data(), static_cast<std::size_t>(values_[b]));
}

meeting_messages user_meeting::begin(int) {
  started_ = true;
  auto result = sent(exchange_->begin(gradients_));
  auto answers = take_early();
  std::ranges::move(answers, std::back_inserter(result));
  return result;
}

meeting_messages user_meeting::receive(mail::meeting_message received) {
  auto& message = std::get<mail::user_message>(received.body);
  if (message.update < update_
      || (started_ && message.update == update_ && is_done(exchanged)))
    throw std::logic_error("data replica " + std::to_string(message.from)
                           + " sent a message for an update whose user_exchange has "
                             "ended in the receiving replica");
  if (message.update != update_) {
    later_.push_back(std::move(message));
    return {};
  }
  early_.push_back(std::move(message));
  return started_ ? take_early() : meeting_messages{};
}

meeting_messages user_meeting::take_early() {
  meeting_messages result;
  while (!early_.empty()) {
    const auto message = std::move(early_.front());
    early_.pop_front();
    auto answers = sent(exchange_->receive(message.from, message.bytes));
    std::ranges::move(answers, std::back_inserter(result));
  }
  return result;
}

meeting_messages user_meeting::sent(std::vector<exchange_message> messages) const {
  meeting_messages result;
  for (auto& message : messages) {
    if (message.to < 0 || message.to >= plan_->mesh[axis::data]
        || message.to == where_.data)
      throw std::logic_error("user_exchange sends to data replica "
                             + std::to_string(message.to) + ": allowed are 0 to "
                             + std::to_string(plan_->mesh[axis::data] - 1)
                             + ", except the sender");
    auto to = where_;
    to.data = message.to;
    const auto bytes = std::ssize(message.payload);
    result.push_back(
      {.to = {role::optimizer_shard, to},
       .meeting = meeting_kind::user,
       .body = mail::user_message{update_, where_.data, std::move(message.payload)},
       .kind = traffic::gradients,
       .bytes = bytes});
  }
  return result;
}

void user_meeting::next_update() {
  ++update_;
  started_ = false;
  for (auto& message : std::exchange(later_, {}))
    (message.update == update_ ? early_ : later_).push_back(std::move(message));
}

std::optional<missing_peer> user_meeting::waits_for() const {
  if (!started_ || exchange_->is_done())
    return {};
  auto input = exchange_->waits_for();
  auto user_code = name_of_user_meeting(where_.stage, where_.data)
                   + " has begun and still waits for " + input;
  return missing_peer{std::move(input), "", std::move(user_code)};
}

} // namespace troupe
