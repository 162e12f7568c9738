#include "actors/updates/parameter_server.hpp"

#include "actors/mail/failure.hpp"
#include "actors/mail/ship.hpp"
#include "actors/plan/costs.hpp"

#include <algorithm>

namespace troupe {

server_core::server_core(const run_plan& plan, position where, server_memory memory)
  : where_(where),
    staleness_(plan.exchange->staleness),
    memory_(std::move(memory)),
    applied_(static_cast<std::size_t>(plan.data)) {
  const auto values = plan.state_values_of(where);
  bytes_ = values * std::int64_t{sizeof(float)};
  operations_ = update_operations(values);
}

std::optional<work> server_core::next_work() {
  if (pushes_.empty() || std::exchange(busy_, true))
    return {};
  return work{.kind = static_cast<int>(op::update),
              .stage = where_.stage,
              .operations = operations_,
              .run = [this] {
                const auto& p = pushes_.front();
                memory_.parameters->update(p.data, p.samples, p.factor, p.gradients,
                                           memory_.state.get());
              }};
}

std::vector<int> server_core::end_work() {
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
  return answered;
}

int server_core::slowest() const {
  return static_cast<int>(std::ranges::min_element(applied_) - applied_.begin());
}

// All data replicas push equally often, so one that has finished holds nobody up.
bool server_core::may_answer(int data) const {
  return !staleness_
         || applied_[static_cast<std::size_t>(data)] - std::ranges::min(applied_)
              <= *staleness_;
}

std::optional<int> server_core::holds_up() const {
  return pulls_.empty() ? std::nullopt : std::optional{slowest()};
}

namespace {

using self_pointer = parameter_server_actor::stateful_pointer<parameter_server_state>;

void apply_next(self_pointer self) {
  auto& state = self->state;
  if (auto next = state.core->next_work())
    state.computer->enqueue(
      std::move(*next), [meter = state.shared.meter, me = parameter_server_actor{self},
                         stage = state.where.stage](nanoseconds from, nanoseconds to) {
        post(*meter, me, mail::ended{{op::update, 0, stage, 0}, from, to});
      });
}

/// Tells a data replica that its share is there; its own is not sent anywhere.
void answer(self_pointer self, int data) {
  auto& state = self->state;
  const auto& client = (*state.peers.clients)[static_cast<std::size_t>(data)];
  const mail::pulled what{state.where.data};
  auto receiver = state.where;
  receiver.data = data;
  if (data == state.where.data)
    tell(self, *state.shared.meter, client, what);
  else
    ship(self, state.shared,
         {traffic::parameters, state.core->bytes(), state.where, receiver}, client,
         what);
}

mail::waiting_for explain(self_pointer self) {
  const auto& state = self->state;
  const auto slow = state.core->holds_up();
  if (!slow)
    return {state.name, "", ""};
  auto other = state.where;
  other.data = *slow;
  return {state.name, "a push, to answer those who are ahead",
          state.shared.plan->optimizer_of(other)};
}

} // namespace

parameter_server_actor::behavior_type parameter_server(self_pointer self, props shared,
                                                       position where,
                                                       std::shared_ptr<device> computer,
                                                       server_memory memory) {
  report_failures(self);
  auto& state = self->state;
  state.name = shared.plan->server_of(where);
  state.where = where;
  state.core = std::make_unique<server_core>(*shared.plan, where, std::move(memory));
  state.shared = std::move(shared);
  state.computer = std::move(computer);
  auto& meter = *state.shared.meter;
  return {
    hear(self, meter,
         [self](const mail::push& what) {
           self->state.core->take(what);
           apply_next(self);
         }),
    hear(self, meter,
         [self](const mail::ended&) {
           for (const int data : self->state.core->end_work())
             answer(self, data);
           apply_next(self);
         }),
    hear(self, meter,
         [self](const mail::explain&) {
           tell(self, *self->state.shared.meter, self->state.peers.coordinator,
                explain(self));
         }),
    hear(self, meter,
         [self](const parameter_server_peers& peers) { self->state.peers = peers; }),
  };
}

} // namespace troupe
