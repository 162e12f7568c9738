// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace troupe {

/// By what the members of a group find each other. One of them makes it, and it travels
/// to the others.
using group_id = std::array<char, 128>;

/// One member of a group.
struct membership {
  group_id of;
  int member; ///< 0 to members - 1.
  int members;
  int blocks = 16; ///< Of its GPU, that an exchange takes at most, also while it waits.
};

/// Values that one member of a group sends another.
struct transfer {
  enum class way : std::uint8_t { send, receive };

  way how;
  int other; ///< The member that receives, or sends.
  float* values;
  std::int64_t count; ///< At least one.
};

/// One member's end of a group of GPUs that exchange arrays without this machine's
/// help: NCCL's communicator, and the stream that it works on. Members may be in
/// several processes.
class communicator {
public:
  virtual ~communicator() = default;

  /// Launches transfers, none of which waits for another one. They are over, and what
  /// follows on the stream goes on, when others have launched what each of them needs.
  /// What one member sends another arrives in the order in which it was sent. For one
  /// thread at a time.
  /// \throws std::runtime_error if the group has failed
  virtual void exchange(std::span<const transfer> all) = 0;

  /// Ends what is under way, and what follows too. From any thread.
  virtual void abort() noexcept = 0;

  /// Whether all that was exchanged until now, and is over, was exchanged.
  /// \throws std::runtime_error if the group has failed, or was ended
  virtual void check() = 0;
};

} // namespace troupe
