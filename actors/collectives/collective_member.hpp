// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/collectives/member_core.hpp"
#include "actors/mail/props.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <string>
#include <vector>

namespace troupe {

namespace mail {

/// Member to whoever listens: its part is done.
struct member_done {
  int rank;
  nanoseconds when; ///< 0 in real time.
  collective_traffic sent;
};

} // namespace mail

using collective_member_actor =
  caf::typed_actor<caf::reacts_to<collective_message>,
                   caf::reacts_to<struct collective_peers>,
                   caf::reacts_to<mail::sum_over>, caf::reacts_to<mail::explain>>;

/// Who hears of the ends of members, and what they wait for.
using collective_listener_actor =
  caf::typed_actor<caf::reacts_to<mail::member_done>, caf::reacts_to<mail::waiting_for>,
                   caf::reacts_to<struct collective_peers>>;

/// Makes a member begin, and a listener hear of members that fail.
struct collective_peers {
  /// By rank. One list for all: a thousand members would keep a million handles.
  std::shared_ptr<const std::vector<collective_member_actor>> members;
  collective_listener_actor listener;
};

struct collective_member_state {
  std::string name = "member";
  props shared;
  device* sums = nullptr;
  std::unique_ptr<member_core> core;
  collective_peers peers;
};

/// One rank in a collective. \param sums does its sums; null: it does them at once
collective_member_actor::behavior_type collective_member(
  collective_member_actor::stateful_pointer<collective_member_state> self, props shared,
  collective_part part, collective_memory memory, device* sums);

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::collective_peers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::collective_message)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::member_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::sum_over)
