// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/directory.hpp"
#include "actors/mail/props.hpp"
#include "actors/run/notice_board.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// One answer of each stage, by its index().
template <class Message>
using answers = std::map<std::size_t, Message>;

struct coordinator_state {
  std::string name = "coordinator";
  props shared;
  std::shared_ptr<notice_board> board;
  std::shared_ptr<const directory> everybody;
  // Answers, by whom they are from: a repeated one counts once.
  std::set<int> finished;                           // ranks
  std::set<int> held;                               // ranks, in this round
  int round = 0;                                    // the times that the run was held
  std::set<int> at_checkpoint;                      // ranks, at the next one
  int last_checkpoint = 0;                          // batches at which all ranks were
  std::map<int, int> begun;                         // counts, by rank
  std::map<int, answers<mail::snapshot>> snapshots; // by batches
  int last_snapshot = 0;                            // batches of the newest whole one
  bool collects = false;                            // what follows was asked for
  answers<mail::collected> collected;
  int copies = 0;               // batches after which stages copy
  int saves = 0;                // batches whose copies come
  std::set<std::size_t> copied; // stages
  answers<mail::saved> saved;
  int recalls = 0;                // batches whose copies were asked for
  std::set<std::size_t> recalled; // stages that have not answered
};

/// Watches over a run: knows everyone, counts who is done, and passes on to all what
/// the waiting thread wants; posts to its board what that thread must know.
coordinator_actor::behavior_type
coordinator(coordinator_actor::stateful_pointer<coordinator_state> self, props shared,
            std::shared_ptr<notice_board> board);

} // namespace troupe
