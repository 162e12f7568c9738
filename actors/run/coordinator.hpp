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

struct coordinator_state {
  std::string name = "coordinator";
  props shared;
  std::shared_ptr<notice_board> board;
  std::shared_ptr<const directory> everybody;
  int finished = 0;                                     ///< Ranks.
  int held = 0;                                         ///< Ranks.
  int at_checkpoint = 0;                                ///< Ranks.
  std::vector<mail::begun> begun;                       ///< A rank each.
  std::map<int, std::vector<mail::snapshot>> snapshots; ///< By batches.
  std::vector<mail::collected> collected;
  int copies = 0;               // batches after which stages copy
  int saves = 0;                // batches whose copies come
  std::set<std::size_t> copied; // stages
  std::map<std::size_t, mail::saved> saved;
  int recalls = 0;                // batches whose copies were asked for
  std::set<std::size_t> recalled; // stages that have not answered
};

/// Watches over a run: knows everyone, counts who is done, and passes on to all what
/// the waiting thread wants; posts to its board what that thread must know.
coordinator_actor::behavior_type
coordinator(coordinator_actor::stateful_pointer<coordinator_state> self, props shared,
            std::shared_ptr<notice_board> board);

} // namespace troupe
