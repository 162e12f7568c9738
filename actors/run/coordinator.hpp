// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/actor_handles.hpp"
#include "actors/mail/run_context.hpp"
#include "actors/run/run_status.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// One answer of each stage, by the stage's actor_handles::index().
template <class Message>
using answers = std::map<std::size_t, Message>;

struct coordinator_state {
  std::string name = "coordinator";
  run_context shared;
  std::shared_ptr<run_status> status;
  std::shared_ptr<const actor_handles> handles;
  // Answers, by sender: a repeated answer counts once.
  std::set<int> finished;      // ranks
  std::set<int> held;          // ranks, in this round
  int round = 0;               // number of holds so far
  std::set<int> at_checkpoint; // ranks that wait at the next checkpoint
  int last_checkpoint = 0;     // batches of this run at the last complete checkpoint
  std::map<int, int> started;  // counts of `mail::started`, by rank
  std::map<int, answers<mail::snapshot>> snapshots; // by number of batches
  int last_snapshot = 0; // batches of the newest complete snapshot
  bool collects = false; // whether `collected` was requested
  answers<mail::collected> collected;
  int copies = 0;               // batches of the last `save`
  int saves = 0;                // batches of the last `save` with `hand_over`
  std::set<std::size_t> copied; // index() of stages that have copied
  answers<mail::saved> saved;
  int fetched_batches = 0;          // batches whose kept copies were requested
  std::set<std::size_t> unanswered; // index() of asked stages without an answer
};

/// Supervises a run: monitors every other actor, and counts the ranks that have
/// finished. Forwards requests of the thread that waits for the run to the schedulers
/// or stages concerned. Posts failures to `status`. Posts answers when the answers of
/// all stages or ranks have come, but each explanation and each kept state immediately.
coordinator_actor::behavior_type
coordinator(coordinator_actor::stateful_pointer<coordinator_state> self,
            run_context shared, std::shared_ptr<run_status> status);

} // namespace troupe
