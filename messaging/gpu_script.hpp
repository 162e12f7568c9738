// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/communicator.hpp"
#include "kernels/stream.hpp"
#include "messaging/collective_part.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// A part of a collective as GPUs play it: what a member launches on its stream, in
/// order, with no message and no wait in between. Moves and adds what the part's order
/// says, in that order, so the sums have the bits of `collective`.
///
/// A step sends, and then waits for what it receives; so transfers are launched
/// together up to the next one that is received, and no member waits to send before it
/// may receive. What the array has no place for yet waits in a slot: it is added to
/// what is there, or belongs to a later step.
class gpu_script {
public:
  /// \pre the order is in place
  explicit gpu_script(const collective_part& part);

  const collective_part& part() const { return part_; }

  /// The slots that it needs at once; all are free when all is launched, as what
  /// follows on the stream waits.
  payload_bound slots() const { return bound_; }

  /// Values that this member sends another one.
  std::int64_t sent_to(int other) const;

  /// \param memory whose pool has room for the slots \param on where `by` exchanges
  /// \throws std::runtime_error as of communicator; std::logic_error if the pool is
  /// empty
  void launch(const collective_memory& memory, communicator& by, stream& on) const;

private:
  static constexpr int array = -1; // in place of a slot

  struct planned_transfer {
    transfer::way how = transfer::way::send;
    int other = nobody;
    int slot = array;
    value_range where; // in the array, or in the slot
  };

  enum class deed : std::uint8_t { exchange, keep, copy, add };

  struct step {
    deed what;
    std::vector<planned_transfer> together; // of an exchange
    int slot = array;                       // of all others
    chunk_range range = {};                 // of the array, likewise
  };

  struct writer;

  collective_part part_;
  std::vector<step> steps_;
  payload_bound bound_;
};

/// Room for the messages of so many collectives that are under way at once, and where
/// GPUs may exchange in place of those, for the slots of one.
payload_bound copies_of(const collective_part& part, int under_way, bool on_gpus);

} // namespace troupe
