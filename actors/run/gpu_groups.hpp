// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/run_monitor.hpp"
#include "kernels/cpu_device.hpp"
#include "kernels/join_group.hpp"
#include "messaging/group_calls.hpp"
#include "plan/gpu_groups.hpp"

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// Thrown if the caller of gpu_groups ends the wait before all members have joined.
struct ended_while_joining : std::runtime_error {
  ended_while_joining() : std::runtime_error("ended while the run waited for GPUs") {
    // nop
  }
};

/// The groups of a run whose GPUs exchange arrays themselves.
struct known_groups {
  /// Ids by which members find each other, by index in exchanging_groups(). Messages
  /// carry the arrays of groups without an id.
  std::map<int, group_id> ids;
  /// The reason, in words, why ranks that could form a group of GPUs have none; if
  /// several such groups are missing, the last group's reason. Empty if no such group
  /// is missing. Other groups may exist in either case.
  std::string exclusion;
};

/// Makes ids for the groups of a run that is wholly in this process.
/// \throws std::runtime_error if the id of a group cannot be made
known_groups groups_here(const run_plan& plan);

/// The members that ranks here have in GPU groups, with streams, communicators, and the
/// devices that launch exchanges. All members are made, and have moved a value, when
/// the constructor returns.
class gpu_groups {
public:
  /// \param groups the run's groups, with members here or elsewhere
  /// \param local_ranks the ranks here
  /// \param threads launch the exchanges; threads, plan and watch outlive this object.
  /// Null only if no rank here is in a group
  /// \param ended polled on this thread while members join, and may become true on
  /// another thread; true ends the wait; may be empty
  /// \throws std::runtime_error if GPUs of a group do not meet within two minutes, move
  /// wrong values, or a communicator fails
  /// \throws ended_while_joining if `ended` has returned true
  /// \throws std::bad_alloc, no_thread
  gpu_groups(const run_plan& plan, const known_groups& groups,
             const std::vector<int>& local_ranks,
             const std::shared_ptr<compute_threads>& threads, run_monitor& watch,
             const std::function<bool()>& ended = {});

  /// Waits for exchanges under way.
  ~gpu_groups();
  gpu_groups(const gpu_groups&) = delete;
  gpu_groups& operator=(const gpu_groups&) = delete;

  /// The member of stage `where` in the group of a meeting; null if messages carry the
  /// meeting's arrays, or if the stage is not here. Owned by this object.
  /// \param stride number of data replicas from one member to the next (group_finder)
  gpu_group* find(position where, meeting_kind kind, int stride);

  /// The member that stage `end` has in the channel from stage `from` to stage `to`.
  /// Null if messages carry the tensors between both, or if `end` is not here. Owned by
  /// this object.
  /// \param end equal to `from` or `to`
  gpu_group* find_channel(position from, position to, position end);

  /// Discards exchanges that have not begun, and waits up to 50 ms for exchanges under
  /// way. Then aborts the remaining exchanges, as peers may be gone.
  void stop();

  /// True if no exchange of a member here runs or waits to begin.
  bool idle() const;

  /// True if no rank here is in a group.
  bool none() const { return members_.empty(); }

private:
  class trial;
  struct local_member;
  struct joining;

  void join_all(const std::function<bool()>& ended);
  template <class What>
  void at_once(const What& operation);
  template <class Is>
  gpu_group* find_if(position where, const Is& is);

  std::vector<std::unique_ptr<local_member>> members_;
};

} // namespace troupe
