#pragma once

#include "actors/messages.hpp"
#include "actors/port.hpp"
#include "messaging/collective.hpp"

#include <cstdint>
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

/// A member of a collective without its mailbox: its part, its port, and the account of
/// what it sends.
class member_core {
public:
  member_core(collective_part part, collective_memory memory, link_cost link);

  /// A message and when it is to arrive.
  struct shipment {
    collective_message what;
    nanoseconds arrives;
  };

  /// These return what is sent now.
  std::vector<shipment> begin(nanoseconds now);
  std::vector<shipment> take(const collective_message& message, nanoseconds now);

  bool done() const { return part_.done(); }
  int rank() const { return part_.part().rank; }
  const std::string& name() const { return name_; }
  const collective_traffic& sent() const { return sent_; }

  mail::waiting_for explain() const;

private:
  std::vector<shipment> ship(std::vector<collective_message> messages, nanoseconds now);
  void count(const collective_message& message);

  collective part_;
  port port_;
  std::string name_;
  collective_traffic sent_;
  std::int64_t round_bytes_ = 0; // of the latest round
};

} // namespace troupe
