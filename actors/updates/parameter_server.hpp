#pragma once

#include "actors/mail/messages.hpp"
#include "actors/mail/props.hpp"
#include "actors/updates/shared_parameters.hpp"
#include "kernels/device.hpp"
#include "models/optimizer.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What a parameter server works with.
struct server_memory {
  std::shared_ptr<shared_parameters> parameters;
  std::shared_ptr<optimizer> state; ///< Null where nothing is computed.
};

/// A parameter server without its mailbox. It applies data replicas' pushes one by one,
/// in the order in which they come, and answers each with what it holds then: at once
/// (Dean et al., "Large Scale Distributed Deep Networks", 2012), or when the slowest
/// replica is at most `staleness` pushes behind (Ho et al., "More Effective Distributed
/// ML via a Stale Synchronous Parallel Parameter Server", 2013). So who is answered
/// after n pushes sees all pushes of everyone up to their (n - staleness)th, and with a
/// bound of 0 all get the same version.
class server_core {
public:
  server_core(const run_plan& plan, position where, server_memory memory);

  void take(mail::push what) { pushes_.push_back(std::move(what)); }

  /// The arithmetic of the next push, unless one is under way or none is left.
  std::optional<work> next_work();

  /// That has ended. Returns the data replicas that have been answered.
  std::vector<int> end_work();

  /// The data replica whose push others wait for; absent if nobody waits.
  std::optional<int> holds_up() const;

  /// Bytes of its share, as they travel.
  std::int64_t bytes() const { return bytes_; }

private:
  int slowest() const;
  bool may_answer(int data) const;

  position where_;
  std::optional<int> staleness_;
  server_memory memory_;
  std::int64_t bytes_ = 0;
  double operations_ = 0;
  std::deque<mail::push> pushes_; // the first may be under way
  bool busy_ = false;
  std::vector<mail::push> pulls_; // applied and not yet answered
  std::vector<int> applied_;      // pushes of each data replica
};

struct parameter_server_state {
  std::string name = "parameter server";
  props shared;
  position where{};
  std::shared_ptr<device> computer; ///< Its own: it takes no rank's time.
  std::unique_ptr<server_core> core;
  parameter_server_peers peers;
};

/// Holds a share of a stage's parameters for all data replicas, and its optimizer
/// state.
parameter_server_actor::behavior_type
parameter_server(parameter_server_actor::stateful_pointer<parameter_server_state> self,
                 props shared, position where, std::shared_ptr<device> computer,
                 server_memory memory);

} // namespace troupe
