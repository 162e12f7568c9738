// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/interconnect.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

namespace {

/// True if bytes take less time over `a`.
bool is_faster(const link_cost& a, const link_cost& b) {
  return b.bytes_per_second > 0
         && (a.bytes_per_second <= 0 || a.bytes_per_second > b.bytes_per_second);
}

} // namespace

nanoseconds link_cost::occupied(double bytes) const {
  return bytes_per_second > 0 ? std::llround(bytes / bytes_per_second * 1e9) : 0;
}

const link_cost& machine_model::between_machines(int a, int b) const {
  const auto match = pairs.find(std::minmax(a, b));
  return match != pairs.end() ? match->second : between;
}

const link_cost& machine_model::between_ranks(int a, int b) const {
  const int from = machine_of(a), to = machine_of(b);
  return from == to ? inside : between_machines(from, to);
}

link_cost machine_model::slowest() const {
  auto result = inside;
  const auto add = [&](const link_cost& l) {
    result.latency = std::max(result.latency, l.latency);
    if (is_faster(result, l))
      result.bytes_per_second = l.bytes_per_second;
  };
  if (ranks_each > 0)
    add(between);
  for (const auto& [machines, l] : pairs)
    add(l);
  return result;
}

nanoseconds interconnect::lane::serve(nanoseconds first, nanoseconds occupied) {
  const auto begin = std::max(first, free_at);
  free_at = begin + occupied;
  return begin;
}

interconnect::interconnect(virtual_clock& clock, machine_model model, int ranks)
  : clock_(clock),
    model_(std::move(model)),
    is_free_(model_.slowest() == link_cost{}),
    out_(static_cast<std::size_t>(ranks)),
    in_(static_cast<std::size_t>(ranks)) {
  const int count = model_.machine_of(ranks - 1) + 1;
  for (int m = 0; count > 1 && m < count; ++m) {
    link_cost fastest = model_.between_machines(m, m == 0 ? 1 : 0);
    for (int other_machine = 0; other_machine < count; ++other_machine)
      if (other_machine != m
          && is_faster(model_.between_machines(m, other_machine), fastest))
        fastest = model_.between_machines(m, other_machine);
    machines_.push_back({{0, fastest.bytes_per_second}, {}, {}});
  }
}

void interconnect::send(int from, int to, double bytes, virtual_clock::event arrived) {
  if (from == to)
    return arrived();
  const bool same_machine = model_.machine_of(from) == model_.machine_of(to);
  const auto leaves =
    out_[static_cast<std::size_t>(from)].serve(clock_.now(), inside(bytes));
  if (same_machine && model_.inside.bytes_per_second <= 0 && machines_.empty())
    // no port is occupied
    return clock_.call_at(leaves + model_.inside.latency, std::move(arrived));
  if (free_.empty()) {
    free_.push_back(under_way_.size());
    under_way_.emplace_back();
  }
  const auto message = free_.back();
  free_.pop_back();
  const auto latency = same_machine ? model_.inside.latency : 0;
  under_way_[message] = {.from = from,
                         .to = to,
                         .bytes = bytes,
                         .last_byte = leaves + inside(bytes) + latency,
                         .next = {},
                         .arrived = std::move(arrived)};
  go_to(same_machine ? hop::rank_in : hop::machine_out, message, leaves + latency);
}

/// Schedules the service of a message at this hop, when the first byte arrives. All
/// messages of an instant are served at the end of the instant, in the order of
/// senders.
void interconnect::go_to(hop next, std::size_t message, nanoseconds first_byte) {
  under_way_[message].next = next;
  const auto arrive = [this, message] {
    if (arrivals_.empty())
      clock_.at_end_of_instant([this] { serve_arrivals(); }, end_of_instant::arrivals);
    arrivals_.push_back(message);
  };
  if (first_byte > clock_.now())
    clock_.call_at(first_byte, arrive);
  else
    arrive();
}

void interconnect::serve_arrivals() {
  auto due = std::exchange(arrivals_, {});
  std::ranges::stable_sort(due, {}, [this](auto m) { return under_way_[m].from; });
  for (const auto message : due)
    serve(message);
}

void interconnect::serve(std::size_t message) {
  switch (under_way_[message].next) {
  case hop::machine_out:
    return leave_machine(message);
  case hop::machine_in:
    return enter_machine(message);
  case hop::rank_in:
    return enter_rank(message);
  }
}

void interconnect::leave_machine(std::size_t message) {
  auto& m = under_way_[message];
  const int a = model_.machine_of(m.from), b = model_.machine_of(m.to);
  const auto& link = model_.between_machines(a, b);
  auto& sender = machine_of(m.from);
  const auto on_port = sender.port.occupied(m.bytes), on_link = link.occupied(m.bytes);
  const auto passed = sender.out.serve(clock_.now(), on_port);
  const auto begin = links_[{a, b}].serve(passed, on_link);
  m.last_byte =
    std::max({m.last_byte, passed + on_port, begin + on_link}) + link.latency;
  go_to(hop::machine_in, message, begin + link.latency);
}

void interconnect::enter_machine(std::size_t message) {
  auto& m = under_way_[message];
  auto& receiver = machine_of(m.to);
  const auto occupied = receiver.port.occupied(m.bytes);
  const auto begin = receiver.in.serve(clock_.now(), occupied);
  m.last_byte = std::max(m.last_byte, begin + occupied);
  go_to(hop::rank_in, message, begin);
}

void interconnect::enter_rank(std::size_t message) {
  const auto& m = under_way_[message];
  const auto occupied = inside(m.bytes);
  const auto begin = in_[static_cast<std::size_t>(m.to)].serve(clock_.now(), occupied);
  clock_.call_at(std::max(m.last_byte, begin + occupied),
                 [this, message] { deliver(message); });
}

void interconnect::deliver(std::size_t message) {
  free_.push_back(message);
  const auto arrived = std::exchange(under_way_[message].arrived, {});
  arrived(); // the callback may send messages
}

void interconnect::clear() {
  under_way_.clear();
  free_.clear();
  arrivals_.clear();
}

} // namespace troupe
