// SPDX-License-Identifier: BSD-3-Clause
// The interface of collectives and transfers between GPUs: groups, members, transfers,
// communicators.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace troupe {

/// The identity by which the members of a group find each other. One member creates the
/// id and sends the id to all others.
using group_id = std::array<char, 128>;

/// One member of a group.
struct group_member {
  group_id group;
  int member; ///< Index of the member: 0 to members - 1.
  int members;
  int blocks = 16; ///< Most thread blocks of the GPU that an exchange occupies, also
                   ///< while waiting.
};

/// Values that one member of a group sends to another.
struct transfer {
  enum class way : std::uint8_t { send, receive };

  way direction;
  int peer; ///< Index of the other member: receiver of a send, sender of a receive.
  float* values;      ///< Array that the GPU accesses; must outlive the transfer.
  std::int64_t count; ///< Number of values, at least one.
};

/// One member's end of a group of GPUs that exchange arrays without help from this
/// machine's CPU: a communicator of NCCL and a stream. Members may be in several
/// processes.
class communicator {
public:
  /// Leaves the group. With NCCL, waits up to 2 seconds for transfers under way, and
  /// then cancels the transfers. On the imitated GPUs of tests, cancels transfers at
  /// once.
  virtual ~communicator() = default;

  /// Launches the stream's deferred launches, and then transfers, none of which waits
  /// for another transfer of this call. Transfers end, and later work of the stream
  /// starts, when the other members have launched the matching transfers. Values from
  /// one member to another arrive in the order of sending. For one thread at a time.
  /// \throws std::runtime_error with NCCL, if the group has failed or was aborted
  virtual void exchange(std::span<const transfer> transfers) = 0;

  /// Cancels the transfers under way and all later transfers, whose arrays are then
  /// undefined. check() throws from then on. Thread: any.
  virtual void abort() noexcept = 0;

  /// Checks that all exchanges that have ended so far have succeeded. On the imitated
  /// GPUs of tests, waits of the stream report a failed exchange instead.
  /// \throws std::runtime_error if the group has failed, or was aborted
  virtual void check() = 0;
};

} // namespace troupe
