// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/relay.hpp"
#include "messaging/mail/control.hpp"
#include "messaging/mail/meeting_messages.hpp"
#include "messaging/mail/nodes.hpp"
#include "messaging/mail/reports.hpp"
#include "messaging/mail/tensors.hpp"
#include "messaging/mail/turns.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/typed_actor.hpp>

#include <memory>

// The types of the actors of a run: the messages that each kind of actor receives.

namespace troupe {

class actor_handles;

namespace mail {

/// The handles of all actors; received once, by each actor except relays and the
/// recorder. The actor sends no message before. A data source may receive `demand`
/// earlier.
struct wiring {
  std::shared_ptr<const actor_handles> handles;
};

} // namespace mail

using data_source_actor =
  caf::typed_actor<caf::reacts_to<mail::demand>, caf::reacts_to<mail::explain>,
                   caf::reacts_to<mail::wiring>>;

using scheduler_actor =
  caf::typed_actor<caf::reacts_to<mail::arrived>, caf::reacts_to<mail::done>,
                   caf::reacts_to<mail::paused>, caf::reacts_to<mail::decide>,
                   caf::reacts_to<mail::hold>, caf::reacts_to<mail::resume>,
                   caf::reacts_to<mail::resume_from_checkpoint>,
                   caf::reacts_to<mail::stop>, caf::reacts_to<mail::stop_after>,
                   caf::reacts_to<mail::explain>, caf::reacts_to<mail::wiring>>;

/// An actor that computes: optimizer shards, experts, parameter servers. Stages extend
/// this type.
using performer_actor =
  caf::typed_actor<caf::reacts_to<mail::run>, caf::reacts_to<mail::ended>,
                   caf::reacts_to<mail::meeting_message>, caf::reacts_to<mail::explain>,
                   caf::reacts_to<mail::wiring>>;

using stage_actor =
  performer_actor::extend<caf::reacts_to<mail::launched>, caf::reacts_to<activation>,
                          caf::reacts_to<labels>, caf::reacts_to<gradient>,
                          caf::reacts_to<mail::collect>, caf::reacts_to<mail::save>,
                          caf::reacts_to<mail::fetch_kept_state>>;

using recorder_actor = caf::typed_actor<
  caf::reacts_to<mail::samples>, caf::reacts_to<mail::sums>,
  caf::reacts_to<mail::microbatch_loss>, caf::reacts_to<mail::update_part>,
  caf::reacts_to<mail::version_made>, caf::reacts_to<mail::expert_load>>;

using coordinator_actor = caf::typed_actor<
  caf::reacts_to<mail::finished>, caf::reacts_to<mail::held>,
  caf::reacts_to<mail::snapshot>, caf::reacts_to<mail::collected>,
  caf::reacts_to<mail::waiting_for>, caf::reacts_to<mail::hold>,
  caf::reacts_to<mail::resume>, caf::reacts_to<mail::stop>,
  caf::reacts_to<mail::started>, caf::reacts_to<mail::collect>,
  caf::reacts_to<mail::save>, caf::reacts_to<mail::copied>, caf::reacts_to<mail::saved>,
  caf::reacts_to<mail::fetch_kept_state>, caf::reacts_to<mail::kept_state>,
  caf::reacts_to<mail::at_checkpoint>, caf::reacts_to<mail::resume_from_checkpoint>,
  caf::reacts_to<mail::failed>, caf::reacts_to<mail::explain>,
  caf::reacts_to<mail::wiring>>;

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::labels)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::run)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::paused)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::launched)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::demand)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::decide)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::meeting_message)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::samples)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::sums)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::microbatch_loss)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::update_part)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::version_made)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::expert_load)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::finished)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::hold)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::held)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::resume)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::at_checkpoint)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::resume_from_checkpoint)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::stop)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::started)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::stop_after)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::snapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::collect)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::collected)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::save)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::copied)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::saved)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::fetch_kept_state)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::kept_state)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::explain)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::waiting_for)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::wiring)
