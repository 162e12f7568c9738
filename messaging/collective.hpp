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

/// Who does the sums of a collective: itself, when it comes to one, or its caller. A
/// sum adds the values of a message to the array; copies are no sums.
enum class sums_by : std::uint8_t { itself, caller };

/// A sum that a caller has to do, or all that GPUs do of a collective
/// (group_calls.hpp).
struct collective_sum {
  std::int64_t values;       ///< Of the message that is added.
  std::function<void()> run; ///< The arithmetic; empty where nothing is computed.
  device* on = nullptr;      ///< Where; null: as its caller chooses.
  std::function<void()> check = {}; ///< When it is over: throws what has failed.
};

/// Runs one rank's part in a collective, message by message. The arrays belong to it
/// from begin() until done(), and must not change meanwhile. A message is a copy in a
/// buffer of the pool, so with done() the arrays are the caller's own again, even while
/// messages are under way. Messages may arrive in any order, even before begin():
/// they are used in the order of the steps, so the bits of sums do not depend on it. An
/// empty range is not sent, and not waited for.
///
/// Where its caller does the sums, it stops at each of them, and yields that sum once.
/// The sum may be done at any time, on any thread, until end_sum() says that it is
/// over. Messages that come meanwhile are kept. All else is for one thread.
class collective {
public:
  /// \throws std::logic_error if the part's chunks are not what its order cuts
  explicit collective(collective_part part, collective_memory memory = {},
                      sums_by adder = sums_by::itself);

  /// These return what is to be sent now, in order.
  /// \throws std::logic_error if a message belongs to another collective, comes twice,
  /// has another size than expected, or comes when all is done; if the pool is empty
  std::vector<collective_message> begin();
  std::vector<collective_message> take(collective_message message);

  /// The sum that it has come to, for the caller to do; absent if there is none, or it
  /// was yielded before.
  std::optional<collective_sum> take_sum() { return std::exchange(yielded_, {}); }

  /// That sum is over. Returns what is to be sent now.
  /// \throws std::logic_error if it waits for no sum
  std::vector<collective_message> end_sum();

  /// Whether it waits for a sum that its caller does.
  bool sums() const { return sums_; }

  /// Whether it has sent and received everything, and its last sum is over.
  bool done() const { return begun_ && next_ == steps_; }

  /// Whose message of which round it cannot go on without; absent if it is done, has
  /// not begun, or waits for a sum.
  struct missing {
    int from;
    int round;
  };
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

  collective_part part_;
  collective_memory memory_;
  sums_by adder_;
  int steps_;
  int next_ = 0; // step
  bool begun_ = false;
  bool sent_ = false; // the next step's message
  bool sums_ = false; // the next step's message is being added
  std::optional<collective_sum> yielded_;
  std::unordered_map<std::int64_t, collective_message> inbox_; // by round and sender
  buffer last_; // what was sent last, while the array is still the same
  chunk_range last_range_;
};

} // namespace troupe
