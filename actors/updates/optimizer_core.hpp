// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/bucket_meeting.hpp"
#include "actors/meetings/direction_meeting.hpp"
#include "actors/meetings/norm_meeting.hpp"
#include "actors/meetings/server_meeting.hpp"
#include "actors/meetings/tie_meeting.hpp"
#include "actors/meetings/user_meeting.hpp"
#include "actors/rank/action_run.hpp"
#include "actors/rank/performer_core.hpp"
#include "actors/updates/shared_parameters.hpp"
#include "actors/updates/update_pieces.hpp"
#include "models/optimizer.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

// The optimizer shard of a stage: makes the stage's next parameter version from the
// gradients of all directions.

namespace troupe {

/// Resources of an optimizer shard. In a simulation `streams` is empty, and all
/// pointers are null, except `parameters`. Pools are also null where no copies are
/// sent.
struct optimizer_memory {
  /// Stream of each direction's rank; null if that rank is in another process.
  std::vector<stream*> streams;
  /// Null in a simulation, and if parameter servers hold the state.
  std::shared_ptr<optimizer> state;
  /// The parameters of all data replicas, where each replica updates the parameters by
  /// itself (Hogwild); else null.
  std::shared_ptr<shared_parameters> parameters = {};
  std::shared_ptr<exchange_pools> sums;    ///< Pools for sums of gradients.
  std::shared_ptr<exchange_pools> gathers; ///< Pools for gathers of parameters.
  std::shared_ptr<pool> ties;              ///< Pool for gradients of a tied matrix.
  group_finder groups = {};                ///< Empty: no groups of GPUs.
};

/// The updates of one stage, without actor code: each direction runs an action in
/// pieces (update_pieces.hpp). Direction 0, whose rank hosts the optimizer shard, makes
/// the version. The version comes from the optimizer, from parameter servers, or from
/// memory that data replicas share. One thread at a time, the actor's, calls this
/// object; pieces run on devices.
class optimizer_core : public performer_core {
public:
  /// \param where the stage in any direction
  /// \param port outlives this object
  /// \param memory the streams outlive this object
  optimizer_core(std::shared_ptr<const run_plan> plan, position where,
                 performer_port& port, optimizer_memory memory);

  /// Handles a message of a meeting. A direction's mail::update_request begins the
  /// direction's action, which the direction's scheduler has granted to the stage.
  void receive(mail::meeting_message message) override;

  /// Resumes the update of a direction: the scheduler has granted the action again.
  void run(const action& a) override { direction_runs_[direction_of(a)].resume(); }

  /// Handles the end of a piece's work.
  void ended(const mail::ended& e) override;

  mail::waiting_for explain() const override;

private:
  static std::size_t direction_of(const action& a) {
    return static_cast<std::size_t>(a.direction);
  }
  meeting_list list();
  meeting_messages add_bucket(int bucket, const std::vector<buffer>& of_directions);
  void begin(const action& a);
  update_work work_of(int direction);
  void save_previous(int direction);
  void add_directions();
  void add_all();
  void measure();
  void apply();
  void copy(int direction);
  stream& stream_of(int direction) const {
    return *memory_.streams[static_cast<std::size_t>(direction)];
  }
  std::vector<double> squares(bool shards_only) const;
  bool is_copy() const;
  double stage_clip_factor();
  void report_part(double squares);

  std::shared_ptr<const run_plan> plan_;
  position where_;
  performer_port* port_;
  optimizer_memory memory_;
  update_steps steps_;
  std::vector<parameter_part> measured_; // parts of the norm; empty: not measured
  std::vector<std::int64_t> gradients_, parameters_; // values held of each bucket
  double operations_ = 0;
  direction_meeting directions_;
  std::optional<bucket_meeting> sum_, gather_; // among data replicas
  std::optional<user_meeting> user_exchange_;
  std::optional<tie_meeting> tie_;
  std::optional<norm_meeting> norm_;
  std::optional<server_meeting> servers_;
  std::vector<action_run> direction_runs_; // one per direction
  std::optional<mail::update_part> part_;  // of the update under way, to report
  bool added_ = false;                     // directions are added
  int ended_ = 0;                          // finished directions of the current update
};

} // namespace troupe
