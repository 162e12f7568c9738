// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "messaging/collective.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// The core of a member of a collective, without an actor.

namespace troupe {

/// The messages that a rank has sent for a collective.
struct collective_traffic {
  int rounds = 0; ///< Rounds up to and including the rank's last sending round.
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  std::int64_t peak_bytes = 0; ///< The most bytes that a rank sent in one round.

  /// Adds the traffic of another rank: sums of messages and bytes, and the larger
  /// number of rounds and the larger peak of the two ranks.
  void add(const collective_traffic& rank_traffic);
};

/// A member of a collective without an actor: the part, and the count of sent messages.
/// One thread at a time may call a member. The arrays and the pool of the constructor's
/// `memory` outlive this object.
class member_core {
public:
  member_core(collective_part part, collective_memory memory,
              sums_by adder = sums_by::itself);

  /// begin(), receive() and end_sum() call the function of the same name in
  /// `collective`, and return the messages to send now.
  std::vector<collective_message> begin();
  std::vector<collective_message> receive(const collective_message& message);
  std::vector<collective_message> end_sum();

  /// The sum that the part waits for (collective::take_sum()). Absent if the part waits
  /// for no sum, or if an earlier call returned the sum.
  std::optional<collective_sum> take_sum() { return part_.take_sum(); }

  bool done() const { return part_.done(); }
  int rank() const { return part_.part().rank; }
  const std::string& name() const { return name_; }
  const collective_traffic& sent() const { return sent_; }

  mail::waiting_for explain() const;

private:
  std::vector<collective_message> counted(std::vector<collective_message> messages);
  void count(const collective_message& message);

  collective part_;
  std::string name_;
  collective_traffic sent_;
  std::int64_t round_bytes_ = 0; // of the latest round
};

} // namespace troupe
