// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/proxies.hpp"

#include "actors/mail/failure.hpp"
#include "actors/mail/mail.hpp"

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
  mail_carrier carry;
  wire::address of;
};

template <class Message, class Variant>
struct is_among;
template <class Message, class... All>
struct is_among<Message, std::variant<All...>>
  : std::bool_constant<(std::same_as<Message, All> || ...)> {};

/// Sends a message to the other process, if messages of this type are sent between
/// processes.
template <class Message>
void pass_on(const proxy_state& to, Message what) {
  if constexpr (is_among<Message, wire::actor_mail>::value)
    to.carry(to.of, std::move(what));
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
  make(typename handle::template stateful_pointer<proxy_state> self, mail_meter* meter,
       mail_carrier carry, wire::address of) {
    report_failures(self);
    self->state.carry = std::move(carry);
    self->state.of = of;
    // A buffer is free again as soon as its bytes are written, so no handle may stay
    // here.
    return {take<Messages>(self, *meter, [self](Messages what) {
      pass_on(self->state, std::move(what));
    })...};
  }
};

} // namespace

template <class Handle>
Handle proxies::spawn(const wire::address& of) {
  return system_.spawn(proxy_for<Handle>::make, shared_.meter, carry_, of);
}

using kind = wire::address::kind;

scheduler_actor proxies::scheduler(int rank) {
  return spawn<scheduler_actor>({.what = kind::scheduler, .number = rank});
}

stage_actor proxies::stage(position where) {
  return spawn<stage_actor>({.what = kind::stage, .where = where});
}

performer_actor proxies::performer(const troupe::performer& who) {
  const auto what = who.what == role::expert ? kind::expert : kind::optimizer_shard;
  return spawn<performer_actor>(
    {.what = what, .where = who.where, .number = std::max(who.expert, 0)});
}

data_source_actor proxies::data_source(position first) {
  return spawn<data_source_actor>({.what = kind::data_source, .where = first});
}

recorder_actor proxies::recorder() {
  return spawn<recorder_actor>({.what = kind::recorder});
}

coordinator_actor proxies::coordinator() {
  return spawn<coordinator_actor>({.what = kind::coordinator});
}

} // namespace troupe
