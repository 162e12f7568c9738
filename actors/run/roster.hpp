#pragma once

#include "actors/mail/messages.hpp"
#include "actors/mail/props.hpp"
#include "actors/run/equipment.hpp"
#include "actors/run/notice_board.hpp"
#include "actors/run/places.hpp"
#include "actors/run/recorder.hpp"

#include <caf/actor_system.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace troupe {

/// Groups by where their first member stands.
template <class Handle>
using known_groups = std::map<std::size_t, group<Handle>>;

/// The actors of a run: who exists, and whom each may send to.
class roster : private places {
public:
  /// \param equipped outlives all actors
  roster(props shared, equipment& equipped, std::shared_ptr<run_log> log,
         std::shared_ptr<notice_board> board)
    : places(*shared.plan),
      plan_(shared.plan),
      meter_(*shared.meter),
      shared_(std::move(shared)),
      equipped_(equipped),
      log_(std::move(log)),
      board_(std::move(board)) {
    // nop
  }

  /// Makes all actors. \throws what CAF does, with some of them made
  void spawn(caf::actor_system& system);

  /// Sends each its peers. Then the run begins.
  void wire();

  /// Tells everybody who is there to end; may be repeated.
  void dismiss();

  /// Forgets all handles.
  void clear();

  /// Its handle is empty before spawn().
  const coordinator_actor& coordinator() const { return coordinator_; }

private:
  const props& shared() const { return shared_; }
  bool has_servers() const { return plan_->updates_are_by(update_by::servers); }
  void wire_experts(position where, stage_peers& peers);
  void wire_optimizer(position where, known_groups<optimizer_shard_actor>& replicas,
                      known_groups<parameter_server_actor>& servers);

  std::shared_ptr<const run_plan> plan_;
  mail_meter& meter_;
  props shared_;
  equipment& equipped_;
  std::shared_ptr<run_log> log_;
  std::shared_ptr<notice_board> board_;
  coordinator_peers actors_;
  coordinator_actor coordinator_;
};

} // namespace troupe
