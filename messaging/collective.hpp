// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/device.hpp"
#include "messaging/collective_message.hpp"
#include "messaging/collective_part.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe {

/// The side that computes the sums of a collective: the collective itself, at the step
/// that needs a sum, or the caller. A sum adds the values of a message to the array. A
/// copy is not a sum.
enum class sums_by : std::uint8_t { itself, caller };

/// Work that the caller runs for a collective: one sum, or all the GPU work of the
/// collective (group_calls.hpp).
struct collective_sum {
  /// Number of values that are added; for GPU work, number of values of the array.
  std::int64_t values;
  /// The work; empty where nothing is computed. A sum refers to the array and to a
  /// stored message, which stay valid until collective::end_sum(). GPU work refers to
  /// the array and the pool until group_calls::end().
  std::function<void()> run;
  /// The device for the work; null: the caller chooses.
  device* target_device = nullptr;
  /// Throws the error of the GPU work, if there is one; the caller calls `check` after
  /// the end of the work. Empty for sums.
  std::function<void()> check = {};
};

/// Runs one rank's part of a collective, message by message. The collective reads and
/// writes the arrays from begin() until done(), and nothing else may change the arrays
/// meanwhile. A message carries a copy of its values in a buffer of the pool. After
/// done() the caller may use the arrays again, even while messages are under way.
/// Messages may arrive in any order, even before begin(). Each step that receives needs
/// one certain message, so the bits of sums do not depend on the order of arrival. An
/// empty range is neither sent nor waited for.
///
/// Where the caller computes the sums, the collective stops at each sum and yields that
/// sum once. The caller may compute the sum at any time and on any thread, until
/// the call of end_sum(). Messages that arrive in the meantime are stored. Member
/// functions are for one thread at a time.
class collective {
public:
  /// \param memory the arrays and the pool outlive this object; the pool also outlives
  /// the messages
  /// \throws std::logic_error if the part's arrays are not cut into as many chunks as
  /// the order has, or if an encoding lacks a codec in `memory`. Also if the number of
  /// ranks is no power of two, and sums of an all_reduce by doubling or a
  /// reduce_scatter by halving are encoded
  explicit collective(collective_part part, collective_memory memory = {},
                      sums_by adder = sums_by::itself);

  /// begin() starts this part, and is called once. receive() handles a received
  /// message. Both return the messages to send now, in order.
  /// \throws std::logic_error if the pool is empty, or a message is invalid. Invalid
  /// are calls, and messages of another collective, to another rank, of wrong size,
  /// repeated, needed by no step, or after the end. An early message of wrong size
  /// fails in the call that uses the message, possibly begin(). A message that no step
  /// needs fails at the end
  std::vector<collective_message> begin();
  std::vector<collective_message> receive(collective_message message);

  /// Returns the sum that the collective has stopped at, for the caller to compute.
  /// Absent if the collective waits for no sum, or if an earlier call has returned the
  /// sum.
  std::optional<collective_sum> take_sum() { return std::exchange(yielded_, {}); }

  /// Reports the end of the sum that take_sum() has returned. Returns the messages to
  /// send now.
  /// \throws std::logic_error if the collective waits for no sum, if the pool is empty,
  /// or if a stored message is invalid
  std::vector<collective_message> end_sum();

  /// True while the collective waits for the end of a sum that the caller computes.
  bool sums() const { return sums_; }

  /// True when the last message has been received, all messages to send have been
  /// returned, and the last sum has ended. False before begin().
  bool done() const { return started_ && next_ == steps_; }

  /// The sender and the round of the message that the next step needs.
  struct missing {
    int from;
    int round;
  };
  /// Returns the missing message. Absent if the collective is done, has not begun, or
  /// waits for a sum.
  std::optional<missing> waits_for() const;

  const collective_part& part() const { return part_; }

private:
  void advance(std::vector<collective_message>& out);
  void send(const collective_step& step, std::vector<collective_message>& out);
  bool receive(const collective_step& step);
  void keep(collective_message message);
  buffer copy_of(chunk_range range);
  void put(const collective_message& message, chunk_range range, reception use);
  void yield(const collective_message& message, chunk_range range);
  codec& coder() const;

  collective_part part_;
  collective_memory memory_;
  sums_by adder_;
  int steps_;
  int next_ = 0; // index of the next step
  bool started_ = false;
  bool sent_ = false; // the next step's message has been sent
  bool sums_ = false; // the caller adds the next step's message
  std::optional<collective_sum> yielded_;
  std::unordered_map<std::int64_t, collective_message> received_; // by round and sender
  // the copy that was sent last, while the array still has these values
  buffer last_;
  chunk_range last_range_;
};

} // namespace troupe
