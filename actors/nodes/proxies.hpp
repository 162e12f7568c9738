// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/props.hpp"
#include "actors/run/distant_actors.hpp"
#include "messaging/wire/codec.hpp"

#include <caf/actor_system.hpp>

#include <functional>

namespace troupe {

/// Passes mail on to an actor in another process. Called on the proxies' threads.
using mail_carrier = std::function<void(const wire::address&, wire::actor_mail)>;

/// Proxies: for each actor that plays elsewhere a local one with the same typed
/// interface, which gives all that it hears to the carrier. No other actor knows that
/// its peer is far away.
class proxies : public distant_actors {
public:
  /// \param system outlives it
  proxies(caf::actor_system& system, props shared, mail_carrier carry)
    : system_(system), shared_(std::move(shared)), carry_(std::move(carry)) {
    // nop
  }

  scheduler_actor scheduler(int rank) override;
  stage_actor stage(position where) override;
  performer_actor performer(const troupe::performer& who) override;
  data_source_actor data_source(position first) override;
  recorder_actor recorder() override;
  coordinator_actor coordinator() override;

private:
  template <class Handle>
  Handle spawn(const wire::address& of);

  caf::actor_system& system_;
  props shared_;
  mail_carrier carry_;
};

} // namespace troupe
