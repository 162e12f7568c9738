// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "messaging/position.hpp"

#include <functional>
#include <vector>

namespace troupe {

struct run_plan;

/// The meeting of an optimizer shard with the parameter servers of the same stage. The
/// shard sends the gradients of one data replica to all servers. Each server answers
/// when the server's share of the next version is written. Each update has one step,
/// `answered`.
class server_meeting : public meeting {
public:
  static constexpr int answered = 0;

  /// \param plan outlives the meeting
  /// \pre plan has servers
  server_meeting(const run_plan& plan, position where);

  /// Makes the message that all servers receive.
  using push_maker = std::function<mail::push()>;
  /// Sets the function that begin() calls. Objects to which the function refers outlive
  /// the meeting.
  void expect(push_maker maker) { push_ = std::move(maker); }

  meeting_messages begin(int index) override;
  meeting_messages receive(mail::meeting_message received) override;
  bool is_done(int) const override { return awaited_.empty(); }
  std::optional<missing_peer> waits_for() const override;

private:
  position server(int share) const;

  const run_plan* plan_;
  position where_;
  push_maker push_;
  std::vector<int> awaited_; // servers that have not answered
};

} // namespace troupe
