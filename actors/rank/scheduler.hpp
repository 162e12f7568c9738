// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/actor_handles.hpp"
#include "actors/mail/run_context.hpp"
#include "actors/rank/scheduler_core.hpp"
#include "messaging/held_activations.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct scheduler_state {
  std::string name = "scheduler";
  run_context shared;
  std::optional<int> rank; ///< Absent: the device is a parameter server's.
  std::optional<scheduler_core> core;
  std::shared_ptr<const actor_handles> handles;
  rank_sums sums;
  held_activations held;
  /// Measured actions that have not been sent to the recorder.
  std::vector<measured_action> samples;
  std::int64_t noted = 0; ///< Number of actions put into `samples` so far.
  /// `done` messages that came before the action's turn.
  std::vector<mail::done> early;
  bool decision_pending = false;
  bool reported_finished = false;
  int round = 0;                          ///< Round of the last `hold`.
  std::optional<int> reported_checkpoint; ///< Batches of the last `at_checkpoint`.
};

/// The scheduler of one device: receives `arrived`, `paused` and `done`, and grants
/// actions in the order of the rank's program or local rule. The scheduler of a
/// parameter server's own device has no rank, grants actions in the order of arrival,
/// and measures nothing.
/// \param rank absent for the own device of a parameter server
/// \param depth number of actions that the device accepts at the same time
scheduler_actor::behavior_type
scheduler(scheduler_actor::stateful_pointer<scheduler_state> self, run_context shared,
          std::optional<int> rank, int depth);

} // namespace troupe
