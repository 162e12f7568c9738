// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/directory.hpp"
#include "actors/mail/props.hpp"
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
  props shared;
  std::optional<int> rank; ///< Absent: of a parameter server's device.
  std::optional<scheduler_core> core;
  std::shared_ptr<const directory> everybody;
  rank_sums sums;
  held_activations held;
  std::vector<measured_action> samples; ///< Kept, and not yet sent to the recorder.
  std::int64_t noted = 0;               ///< Of those, and of those sent.
  std::vector<mail::done> early;        ///< Ends before their turn.
  bool asked_to_decide = false;
  bool said_finished = false;
  int round = 0;                      ///< Of the last `hold`.
  std::optional<int> said_checkpoint; ///< Batches.
};

/// Decides what a device does next: hears what has arrived and what is done, and grants
/// actions in the order of its rank's program or rule. That of a parameter server's own
/// device has no rank, and measures nothing.
scheduler_actor::behavior_type
scheduler(scheduler_actor::stateful_pointer<scheduler_state> self, props shared,
          std::optional<int> rank, int depth);

} // namespace troupe
