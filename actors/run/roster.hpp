#pragma once

#include "actors/mail/directory.hpp"
#include "actors/mail/props.hpp"
#include "actors/rank/performer_actor.hpp"
#include "actors/run/equipment.hpp"
#include "actors/run/notice_board.hpp"
#include "actors/run/recorder.hpp"

#include <caf/actor_system.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The actors of a run: makes them, tells each of all, and ends them.
class roster : private places {
public:
  /// \param equipped outlives all actors
  roster(props shared, equipment& equipped, std::shared_ptr<run_log> log,
         std::shared_ptr<notice_board> board)
    : places(*shared.plan),
      plan_(shared.plan),
      shared_(std::move(shared)),
      equipped_(equipped),
      log_(std::move(log)),
      board_(std::move(board)),
      everybody_(std::make_shared<directory>(plan_)) {
    // nop
  }

  /// Makes all actors. \throws what CAF does, with some of them made
  void spawn(caf::actor_system& system);

  /// Tells everybody of all. Then the run begins.
  void wire();

  /// Tells everybody who is there to end; may be repeated.
  void dismiss();

  /// Forgets all handles.
  void clear() { everybody_.reset(); }

  /// Its handle is empty before spawn().
  const coordinator_actor& coordinator() const { return everybody_->coordinator; }

private:
  performer_actor spawn(caf::actor_system& system, performer who,
                        const std::string& name, const performer_devices& devices,
                        const core_maker& make);
  void spawn_stages(caf::actor_system& system);
  void spawn_shard(caf::actor_system& system, position where);

  std::shared_ptr<const run_plan> plan_;
  props shared_;
  equipment& equipped_;
  std::shared_ptr<run_log> log_;
  std::shared_ptr<notice_board> board_;
  std::shared_ptr<directory> everybody_;
};

} // namespace troupe
