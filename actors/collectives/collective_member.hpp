// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/collectives/member_core.hpp"
#include "actors/mail/run_context.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <string>
#include <vector>

// The actor that runs one rank's part of a collective, for measurements of collectives.

namespace troupe {

namespace mail {

/// Member to listener: the member's part is done.
struct member_done {
  int rank;
  nanoseconds when; ///< The end, in nanoseconds on the virtual clock; 0 in real time.
  collective_traffic sent;
};

} // namespace mail

using collective_member_actor =
  caf::typed_actor<caf::reacts_to<collective_message>,
                   caf::reacts_to<struct collective_peers>,
                   caf::reacts_to<mail::sum_over>, caf::reacts_to<mail::explain>>;

/// Receives the ends of members, answers of members to mail::explain, and the list of
/// members to monitor.
using collective_listener_actor =
  caf::typed_actor<caf::reacts_to<mail::member_done>, caf::reacts_to<mail::waiting_for>,
                   caf::reacts_to<struct collective_peers>>;

/// The members of a collective, as a message. On receipt a member starts its part, and
/// a listener monitors the members for failures.
struct collective_peers {
  /// Handles of members by rank. All members share one list: a thousand lists would
  /// hold a million handles.
  std::shared_ptr<const std::vector<collective_member_actor>> members;
  collective_listener_actor listener;
};

struct collective_member_state {
  std::string name = "member";
  run_context shared;
  device* sums = nullptr;
  std::unique_ptr<member_core> core;
  collective_peers peers;
};

/// The behavior of an actor that runs one rank's part of a collective. The message
/// `collective_peers` starts the part. The actor reports to the listener.
/// \param shared meter, clock and links outlive the actor; clock and links may be null
/// \param memory arrays and pool outlive the actor
/// \param sums the device that computes the member's sums; null: the member computes
/// its sums immediately. The device outlives the actor.
collective_member_actor::behavior_type collective_member(
  collective_member_actor::stateful_pointer<collective_member_state> self,
  run_context shared, collective_part part, collective_memory memory, device* sums);

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::collective_peers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::collective_message)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::member_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::sum_over)
