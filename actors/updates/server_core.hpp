// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/rank/performer_core.hpp"
#include "actors/rank/performer_port.hpp"
#include "actors/updates/shared_parameters.hpp"
#include "messaging/mail/control.hpp"
#include "messaging/mail/turns.hpp"
#include "models/optimizer.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

// A parameter server: applies gradients of data replicas one by one, synchronously or
// asynchronously.

namespace troupe {

/// Resources of a parameter server.
struct server_memory {
  std::shared_ptr<shared_parameters> parameters;
  std::shared_ptr<optimizer> state; ///< Null in a simulation without arithmetic.
};

/// A parameter server without actor code. The server applies data replicas' pushes one
/// by one, in the order of arrival. The answer to a push holds the parameters at the
/// time of the answer. Without a bound, a push is answered as soon as the server has
/// applied the push (Dean et al., "Large Scale Distributed Deep Networks", 2012). With
/// a bound, a push is answered when the slowest replica is at most `staleness` pushes
/// behind. See Ho et al., "More Effective Distributed ML via a Stale Synchronous
/// Parallel Parameter Server", 2013. The answer to a replica's nth push holds at least
/// the first n - `staleness` pushes of all replicas. With a bound of 0 all replicas
/// receive the same version.
class server_core : public performer_core {
public:
  /// \param port outlives this object
  server_core(std::shared_ptr<const run_plan> plan, position where,
              performer_port& port, server_memory memory);

  /// Queues the push of a data replica. The action of the first push in the queue
  /// arrives at the scheduler once no other push is being applied.
  void receive(mail::meeting_message message) override;

  void run(const action& a) override;
  void ended(const mail::ended& e) override;

  mail::waiting_for explain() const override;

private:
  void arrive_if_free();
  void answer(int data);
  int slowest() const;
  bool may_answer(int data) const;

  std::shared_ptr<const run_plan> plan_;
  position where_;
  performer_port* port_;
  std::optional<int> staleness_;
  server_memory memory_;
  stream stream_;
  std::int64_t values_;
  std::deque<mail::push> pushes_; // the first may be running
  bool busy_ = false;
  std::vector<mail::push> pulls_; // applied and not yet answered
  std::vector<int> applied_;      // pushes of each data replica
};

} // namespace troupe
