// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/device.hpp"
#include "messaging/collective.hpp"
#include "messaging/gpu_script.hpp"

#include <map>
#include <optional>
#include <set>
#include <vector>

// Agreement among the members of a group of GPUs on the next collective to launch.

namespace troupe {

/// A member's end of a group of ranks on different GPUs. The GPUs of the group exchange
/// arrays themselves. The pointers own nothing: the objects outlive the group's
/// group_calls and all launched work.
struct gpu_group {
  communicator* group_communicator; ///< Exchanges arrays.
  /// The stream of the exchanges, which has no other work.
  stream* group_stream;
  device* launches; ///< Runs the work that launches on `group_stream`.
};

/// One member's collectives in a group of GPUs. Before a member launches a collective,
/// the member sends a call to all other members. A call has the instance, and the
/// number of collectives that the member has begun earlier in the group. The launch
/// waits for the calls of all members. Actors, and not GPUs, therefore wait for a late
/// member, and actors can report the wait. Members that begin collectives in different
/// orders get an error instead of a deadlock.
class group_calls {
public:
  explicit group_calls(const gpu_group& group) : group_(group) {}

  /// Begins a collective. Returns the calls for the other members, one each.
  /// \throws std::logic_error if another member has begun the collectives in another
  /// order, or if a stored call is repeated
  /// \throws std::logic_error if the part's order is not in place
  std::vector<collective_message> begin(const collective_part& part,
                                        const collective_memory& memory);

  /// Handles the call of another member, before or after this member's begin(). A call
  /// that comes before begin() is stored, and begin() throws if that call is repeated
  /// or of another order. A call that is repeated after end() is not detected.
  /// \throws std::logic_error if the message is no call, or repeats a call of a
  /// collective under way here
  /// \throws std::logic_error if another collective under way here has the call's
  /// number, or the call's collective has another number here
  void receive(const collective_message& call);

  /// A collective to launch, and the GPU work for the group's device.
  struct launch {
    int instance;
    collective_sum sum;
  };
  /// Returns the next collective in the order of begin(), once all members have begun
  /// the collective. Each collective is returned once. Absent if a call is missing, or
  /// if this member has begun no further collective.
  std::optional<launch> next();

  /// Reports the end of the GPU work of `instance`.
  /// \pre next() has returned the instance
  void end(int instance) { under_way_.erase(instance); }

  /// True from begin() of the instance to end().
  bool is_under_way(int instance) const { return under_way_.contains(instance); }
  bool none() const { return under_way_.empty(); }

  /// True while a launch that next() has returned has not ended.
  bool exchanges() const;

  /// An instance, and the lowest member that has not begun the instance.
  struct missing {
    int instance;
    int from;
  };
  /// Returns the lowest instance that has begun here and lacks a call, and the lowest
  /// member whose call is missing. Absent if no call is missing.
  std::optional<missing> waits_for() const;

private:
  /// A collective that this member has begun.
  struct pending_collective {
    int number;
    collective_memory memory;
    gpu_script script;
    std::set<int> missing; // members whose call has not arrived
  };

  bool is_launched(const pending_collective& entry) const {
    return entry.number < launched_;
  }

  gpu_group group_;
  int started_ = 0, launched_ = 0;
  std::map<int, pending_collective> under_way_;          // by instance
  std::map<int, std::vector<collective_message>> early_; // by instance
};

} // namespace troupe
