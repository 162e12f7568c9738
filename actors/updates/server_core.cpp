// SPDX-License-Identifier: BSD-3-Clause
#include "actors/updates/server_core.hpp"

#include "plan/costs.hpp"
#include "plan/sharding.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

server_core::server_core(std::shared_ptr<const run_plan> plan, position where,
                         performer_port& port, server_memory memory)
  : plan_(std::move(plan)),
    where_(where),
    port_(&port),
    staleness_(plan_->exchange->staleness),
    memory_(std::move(memory)),
    values_(state_values_of(*plan_, where)),
    applied_(static_cast<std::size_t>(plan_->mesh[axis::data])) {
  // nop
}

void server_core::receive(mail::meeting_message message) {
  pushes_.push_back(std::get<mail::push>(std::move(message.body)));
  arrive_if_free();
}

void server_core::arrive_if_free() {
  if (!pushes_.empty() && !std::exchange(busy_, true))
    port_->arrived({op::update, where_.direction, where_.stage, 0});
}

void server_core::run(const action& a) {
  port_->compute({.kind = static_cast<int>(op::update),
                  .stage = where_.stage,
                  .operations = update_operations(values_),
                  .run =
                    [this, &p = pushes_.front()] { // later pushes are added behind this
                                                   // one
                      memory_.parameters->update(p.data, p.samples, p.factor,
                                                 p.gradients, memory_.state.get(),
                                                 &stream_);
                    }},
                 a);
}

void server_core::ended(const mail::ended& e) {
  busy_ = false;
  ++applied_[static_cast<std::size_t>(pushes_.front().data)];
  pulls_.push_back(std::move(pushes_.front()));
  pushes_.pop_front();
  std::vector<int> answered;
  std::erase_if(pulls_, [&](const mail::push& p) {
    if (!may_answer(p.data))
      return false;
    memory_.parameters->read(p.data, p.to);
    answered.push_back(p.data);
    return true;
  });
  // An answered replica may need the buffers immediately, so the buffers are released
  // first.
  for (const int data : answered)
    answer(data);
  port_->done({.action = e.action,
               .start = e.start,
               .end = e.end,
               .off_processor_time = e.off_processor_time});
  arrive_if_free();
}

/// Notifies a data replica that this server's share of the parameters is ready. The
/// replica on this rank gets a local message without traffic.
void server_core::answer(int data) {
  auto to = where_;
  to.data = data;
  port_->send({{role::optimizer_shard, to},
               meeting_kind::servers,
               mail::pulled{where_.data},
               to == where_ ? std::nullopt : std::optional{traffic::parameters},
               values_ * std::int64_t{sizeof(float)}});
}

int server_core::slowest() const {
  return static_cast<int>(std::ranges::min_element(applied_) - applied_.begin());
}

// All data replicas push equally often, so a replica that has finished delays no other.
bool server_core::may_answer(int data) const {
  return !staleness_
         || applied_[static_cast<std::size_t>(data)] - std::ranges::min(applied_)
              <= *staleness_;
}

mail::waiting_for server_core::explain() const {
  const auto name = plan_->server_of(where_);
  if (pulls_.empty())
    return {name, "", ""};
  auto slowest_replica = where_;
  slowest_replica.data = slowest();
  return {name, "a push of the slowest data replica",
          plan_->optimizer_of(slowest_replica)};
}

} // namespace troupe
