// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/proxies.hpp"

#include "actors/mail/failure.hpp"
#include "actors/mail/send.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <concepts>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace troupe {

namespace {

struct proxy_state {
  std::string name = "proxy";
  message_sender send;
  wire::address receiver;
};

template <class Message, class Variant>
struct is_among;
template <class Message, class... All>
struct is_among<Message, std::variant<All...>>
  : std::bool_constant<(std::same_as<Message, All> || ...)> {};

/// Sends a message to the other process, if messages of this type are sent between
/// processes.
template <class Message>
void pass_on(const proxy_state& to, Message message) {
  if constexpr (is_among<Message, wire::actor_message>::value)
    to.send(to.receiver, std::move(message));
  else if constexpr (!std::same_as<Message,
                                   mail::wiring>) // actors elsewhere get other wiring
    throw std::logic_error(std::string{name_of_message<Message>()}
                           + " cannot leave its rank");
}

template <class Handle>
struct proxy_for;

template <class... Messages>
struct proxy_for<caf::typed_actor<
  caf::typed_mpi<caf::detail::type_list<Messages>, caf::output_tuple<void>>...>> {
  using handle = caf::typed_actor<caf::reacts_to<Messages>...>;

  static typename handle::behavior_type
  make(typename handle::template stateful_pointer<proxy_state> self,
       message_meter* meter, message_sender send, wire::address receiver) {
    report_failures(self);
    self->state.send = std::move(send);
    self->state.receiver = receiver;
    // A buffer is free again as soon as its bytes are written, so no handle may stay
    // here.
    return {on_owned_message<Messages>(self, *meter, [self](Messages message) {
      pass_on(self->state, std::move(message));
    })...};
  }
};

} // namespace

template <class Handle>
Handle proxies::spawn(const wire::address& receiver) {
  return system_.spawn(proxy_for<Handle>::make, shared_.meter, send_, receiver);
}

using kind = wire::address::kind;

scheduler_actor proxies::scheduler(int rank) {
  return spawn<scheduler_actor>({.actor = kind::scheduler, .number = rank});
}

stage_actor proxies::stage(position where) {
  return spawn<stage_actor>({.actor = kind::stage, .where = where});
}

performer_actor proxies::performer(const troupe::performer& target) {
  const auto type = target.kind == role::expert ? kind::expert : kind::optimizer_shard;
  return spawn<performer_actor>(
    {.actor = type, .where = target.where, .number = std::max(target.expert, 0)});
}

data_source_actor proxies::data_source(position first) {
  return spawn<data_source_actor>({.actor = kind::data_source, .where = first});
}

recorder_actor proxies::recorder() {
  return spawn<recorder_actor>({.actor = kind::recorder});
}

coordinator_actor proxies::coordinator() {
  return spawn<coordinator_actor>({.actor = kind::coordinator});
}

} // namespace troupe
