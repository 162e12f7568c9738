// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/bucket_meeting.hpp"
#include "actors/meetings/direction_meeting.hpp"
#include "actors/meetings/norm_meeting.hpp"
#include "actors/meetings/own_meeting.hpp"
#include "actors/meetings/server_meeting.hpp"
#include "actors/meetings/tie_meeting.hpp"
#include "actors/rank/conversation.hpp"
#include "actors/rank/performer_core.hpp"
#include "actors/updates/shared_parameters.hpp"
#include "actors/updates/update_pieces.hpp"
#include "models/optimizer.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What an optimizer shard computes with; all are null where it does not, and pools
/// where no such copies travel.
struct optimizer_memory {
  std::vector<stream*> streams; ///< Of each direction's rank; null if it is elsewhere.
  std::shared_ptr<optimizer> state; ///< Null too where parameter servers have it.
  /// Of all data replicas, where each updates them by itself.
  std::shared_ptr<shared_parameters> parameters = {};
  std::shared_ptr<exchange_pools> sums;
  std::shared_ptr<exchange_pools> gathers;
  std::shared_ptr<pool> ties; ///< Gradients of a tied matrix.
  group_finder groups = {};   ///< Empty: there are none.
};

/// The updates of one stage without a mailbox: for each direction an action in pieces
/// (update_pieces.hpp). The first direction, on whose rank it stands, makes the
/// version: by its optimizer, by parameter servers, or in memory that data replicas
/// share.
class optimizer_core : public performer_core {
public:
  /// \param where any direction of the stage \param port outlives it
  optimizer_core(std::shared_ptr<const run_plan> plan, position where,
                 performer_port& port, optimizer_memory memory);

  /// A letter of a meeting. With a direction's part of an update, that update begins:
  /// its scheduler has granted it.
  void take(mail::letter what) override;

  /// A scheduler has granted the update of its direction again.
  void go(const action& a) override { talks_[direction_of(a)].go_on(); }

  /// Work has ended.
  void ended(const mail::ended& e) override;

  mail::waiting_for explain() const override;

private:
  static std::size_t direction_of(const action& a) {
    return static_cast<std::size_t>(a.direction);
  }
  meeting_list list();
  letters add_bucket(int bucket, const std::vector<buffer>& of_directions);
  void begin(const action& a);
  update_work work_of(int direction);
  void put_aside(int direction);
  void add_directions();
  void add_all();
  void measure();
  void apply();
  void copy(int direction);
  stream& on(int direction) const {
    return *memory_.streams[static_cast<std::size_t>(direction)];
  }
  std::vector<double> squares(bool shards_only) const;
  double clip_factor_of_own() const;

  std::shared_ptr<const run_plan> plan_;
  position where_;
  performer_port* port_;
  optimizer_memory memory_;
  update_steps steps_;
  std::vector<parameter_part> clipped_; // if there is clipping: what it measures
  std::vector<std::int64_t> gradients_, parameters_; // values of each bucket here
  double operations_ = 0;
  direction_meeting directions_;
  std::optional<bucket_meeting> sum_, gather_; // among data replicas
  std::optional<own_meeting> own_;
  std::optional<tie_meeting> tie_;
  std::optional<norm_meeting> norm_;
  std::optional<server_meeting> servers_;
  std::vector<conversation> talks_; // a direction each
  bool added_ = false;              // directions
  int ended_ = 0;                   // directions of the update under way
};

} // namespace troupe
