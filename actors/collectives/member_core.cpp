// SPDX-License-Identifier: BSD-3-Clause
#include "actors/collectives/member_core.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

std::string name_of(int rank) {
  return "member " + std::to_string(rank);
}

} // namespace

void collective_traffic::add(const collective_traffic& rank_traffic) {
  rounds = std::max(rounds, rank_traffic.rounds);
  messages += rank_traffic.messages;
  bytes += rank_traffic.bytes;
  peak_bytes = std::max(peak_bytes, rank_traffic.peak_bytes);
}

member_core::member_core(collective_part part, collective_memory memory, sums_by adder)
  : part_(std::move(part), memory, adder), name_(name_of(rank())) {
  // nop
}

std::vector<collective_message> member_core::begin() {
  return counted(part_.begin());
}

std::vector<collective_message>
member_core::receive(const collective_message& message) {
  return counted(part_.receive(message));
}

std::vector<collective_message> member_core::end_sum() {
  return counted(part_.end_sum());
}

mail::waiting_for member_core::explain() const {
  if (part_.sums())
    return {name_, "the end of its sum", ""};
  const auto missing = part_.waits_for();
  if (!missing)
    return {name_, "", ""};
  return {name_, "the message of round " + std::to_string(missing->round),
          name_of(missing->from)};
}

std::vector<collective_message>
member_core::counted(std::vector<collective_message> messages) {
  for (const auto& message : messages)
    count(message);
  return messages;
}

// Ranks send round by round, so one sum of bytes is enough.
void member_core::count(const collective_message& message) {
  if (message.round >= sent_.rounds)
    round_bytes_ = 0;
  round_bytes_ += message.bytes;
  sent_.rounds = message.round + 1;
  sent_.messages += 1;
  sent_.bytes += message.bytes;
  sent_.peak_bytes = std::max(sent_.peak_bytes, round_bytes_);
}

} // namespace troupe
