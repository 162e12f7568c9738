// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective.hpp"
#include "messaging/group_calls.hpp"

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// One member's part in the collectives of a group, several of which may be under way.
/// All members begin the same ones by the same instances, but not at once: what others
/// have sent for one that has not begun here is kept.
class collectives_under_way {
public:
  /// Somebody who does sums: told of each that a collective comes to. Calls end_sum()
  /// when it is over, not before this returns.
  using sum_asker = std::function<void(int instance, collective_sum what)>;

  /// Sums are work of somebody else from now on. Without this each is done at once.
  /// \pre none()
  void yield_sums(sum_asker ask) { ask_ = std::move(ask); }

  /// The group whose GPUs exchange the arrays of an instance; null: messages carry
  /// them.
  using group_finder = std::function<gpu_group*(int instance)>;

  /// What GPUs launch is asked for like a sum. \pre none()
  void exchange_by(group_finder groups, sum_asker ask) {
    groups_ = std::move(groups);
    launch_ = std::move(ask);
  }

  /// Begins a collective over an array of so many values, cut evenly. Returns what is
  /// to be sent now, as take() does. \param memory empty where nothing is computed
  std::vector<collective_message> begin(const collective_part& part,
                                        collective_memory memory);

  std::vector<collective_message> take(collective_message message);

  /// A collective's sum is over. Returns what is to be sent now.
  std::vector<collective_message> end_sum(int instance);

  bool is_under_way(int instance) const;
  bool none() const;

  /// Whether a collective waits for a sum, or for GPUs that exchange.
  bool sums() const;

  /// A collective that waits for a message, and the member without whose message it
  /// cannot go on; absent if none waits.
  struct missing {
    int instance;
    int from;
  };
  std::optional<missing> waits_for() const;

private:
  void look_at(int instance);
  group_calls* calls_of(int instance);
  void launch_next(group_calls& of);

  sum_asker ask_;
  sum_asker launch_;
  group_finder groups_;
  std::map<gpu_group*, group_calls> calls_;
  std::map<int, collective> running_; // by instance
  std::map<int, std::vector<collective_message>> early_;
};

} // namespace troupe
