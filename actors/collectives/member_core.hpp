// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "messaging/collective.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What a rank sent for a collective.
struct collective_traffic {
  int rounds = 0; ///< Up to the last one in which it sent.
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  std::int64_t peak_bytes = 0; ///< The most in a round.

  /// What all ranks sent; the peak is of the rank with most.
  void add(const collective_traffic& other);
};

/// A member of a collective without its mailbox: its part, and the account of what it
/// sends.
class member_core {
public:
  member_core(collective_part part, collective_memory memory,
              sums_by adder = sums_by::itself);

  /// These return what is sent now.
  std::vector<collective_message> begin();
  std::vector<collective_message> take(const collective_message& message);
  std::vector<collective_message> end_sum();

  /// The sum that its part has come to, as of `collective`.
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
