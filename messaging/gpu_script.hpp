// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/communicator.hpp"
#include "kernels/stream.hpp"
#include "messaging/collective_part.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// A part of a collective, as executed by GPUs. The script lists the transfers, copies
/// and sums that a member launches on one stream, without messages or waits in between.
/// The script moves and adds in the order of the part's steps, so the sums have the
/// same bits as the sums of `collective`.
///
/// A step sends, and then waits for the received message. The script launches all
/// transfers from one receive to the next together, so no transfer waits for another. A
/// received value that cannot go to the array yet waits in a slot, a buffer of the
/// pool. Such values are added, are for a later step, or replace values that are still
/// being sent.
class gpu_script {
public:
  /// \pre the order is in place; otherwise the constructor throws std::logic_error
  explicit gpu_script(const collective_part& part);

  const collective_part& part() const { return part_; }

  /// The slots that the script needs at the same time. After launch() all slots are
  /// free again for later work on the same stream, because that work waits for the
  /// script.
  payload_bound slots() const { return bound_; }

  /// The number of values that this member sends to `peer`.
  std::int64_t sent_to(int peer) const;

  /// Launches the script.
  /// \param memory the array, and a pool with enough buffers for the slots
  /// \param stream the stream on which `communicator` exchanges
  /// \throws std::runtime_error if the group has failed (communicator::exchange)
  /// \throws std::logic_error if the pool has fewer free buffers than slots()
  void launch(const collective_memory& memory, communicator& communicator,
              stream& stream) const;

private:
  static constexpr int array = -1; // in place of the number of a slot

  struct planned_transfer {
    transfer::way way = transfer::way::send;
    int peer = nobody;
    int slot = array;
    value_range where; // in the array, or in the slot
  };

  enum class step_kind : std::uint8_t { exchange, keep, copy, add };

  struct step {
    step_kind kind;
    std::vector<planned_transfer> together; // transfers of an exchange
    int slot = array;                       // of a keep, copy or add
    chunk_range range = {};                 // of the array, for a keep, copy or add
  };

  struct writer;

  collective_part part_;
  std::vector<step> steps_;
  payload_bound bound_;
};

/// The number and the size of the buffers for the messages of `under_way` collectives
/// like `part` that run at the same time. If `on_gpus`, the buffers also suffice for
/// the slots of the part's gpu_script.
/// \pre if `on_gpus`, the order is in place
payload_bound copies_of(const collective_part& part, int under_way, bool on_gpus);

} // namespace troupe
