#include "actors/member_core.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

std::string name_of(int rank) {
  return "member " + std::to_string(rank);
}

} // namespace

void collective_traffic::add(const collective_traffic& other) {
  rounds = std::max(rounds, other.rounds);
  messages += other.messages;
  bytes += other.bytes;
  peak_bytes = std::max(peak_bytes, other.peak_bytes);
}

member_core::member_core(collective_part part, collective_memory memory, link_cost link)
  : part_(std::move(part), memory), port_(link), name_(name_of(rank())) {
  // nop
}

std::vector<member_core::shipment> member_core::begin(nanoseconds now) {
  return ship(part_.begin(), now);
}

std::vector<member_core::shipment> member_core::take(const collective_message& message,
                                                     nanoseconds now) {
  return ship(part_.take(message), now);
}

mail::waiting_for member_core::explain() const {
  const auto missing = part_.waits_for();
  if (!missing)
    return {name_, "", ""};
  return {name_, "the message of round " + std::to_string(missing->round),
          name_of(missing->from)};
}

std::vector<member_core::shipment>
member_core::ship(std::vector<collective_message> messages, nanoseconds now) {
  std::vector<shipment> result;
  result.reserve(messages.size());
  for (auto& message : messages) {
    count(message);
    const auto arrives = port_.send(static_cast<double>(message.bytes()), now);
    result.push_back({std::move(message), arrives});
  }
  return result;
}

// Ranks go from round to round, so one sum is enough.
void member_core::count(const collective_message& message) {
  if (message.round >= sent_.rounds)
    round_bytes_ = 0;
  round_bytes_ += message.bytes();
  sent_.rounds = message.round + 1;
  sent_.messages += 1;
  sent_.bytes += message.bytes();
  sent_.peak_bytes = std::max(sent_.peak_bytes, round_bytes_);
}

} // namespace troupe
