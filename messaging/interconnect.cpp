#include "messaging/interconnect.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

/// Whether bytes take less time over `a`.
bool is_faster(const link_cost& a, const link_cost& b) {
  return b.bytes_per_second > 0
         && (a.bytes_per_second <= 0 || a.bytes_per_second > b.bytes_per_second);
}

} // namespace

nanoseconds link_cost::occupied(double bytes) const {
  return bytes_per_second > 0 ? std::llround(bytes / bytes_per_second * 1e9) : 0;
}

const link_cost& machine_model::between_machines(int a, int b) const {
  const auto found = pairs.find(std::minmax(a, b));
  return found != pairs.end() ? found->second : between;
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

interconnect::interconnect(virtual_clock& clock, machine_model how, int ranks)
  : clock_(clock),
    how_(std::move(how)),
    is_free_(how_.slowest() == link_cost{}),
    out_(static_cast<std::size_t>(ranks)),
    in_(static_cast<std::size_t>(ranks)) {
  const int count = how_.machine_of(ranks - 1) + 1;
  for (int m = 0; count > 1 && m < count; ++m) {
    link_cost fastest = how_.between_machines(m, m == 0 ? 1 : 0);
    for (int other = 0; other < count; ++other)
      if (other != m && is_faster(how_.between_machines(m, other), fastest))
        fastest = how_.between_machines(m, other);
    machines_.push_back({{0, fastest.bytes_per_second}, {}, {}});
  }
}

void interconnect::send(int from, int to, double bytes, virtual_clock::event arrived) {
  if (from == to)
    return arrived();
  if (how_.machine_of(from) == how_.machine_of(to))
    send_inside(from, to, bytes, std::move(arrived));
  else
    send_between(from, to, bytes, std::move(arrived));
}

void interconnect::send_inside(int from, int to, double bytes,
                               virtual_clock::event arrived) {
  const auto& link = how_.inside;
  const auto occupied = link.occupied(bytes);
  const auto begin = out_[static_cast<std::size_t>(from)].serve(clock_.now(), occupied);
  const auto first = begin + link.latency;
  if (link.bytes_per_second <= 0 && machines_.empty()) // no port is ever busy
    return clock_.at(first, std::move(arrived));
  at_first_byte(from, first,
                [this, to, occupied, last = first + occupied,
                 arrived = std::move(arrived)]() mutable {
                  receive(to, occupied, last, std::move(arrived));
                });
}

void interconnect::send_between(int from, int to, double bytes,
                                virtual_clock::event arrived) {
  const auto a = how_.machine_of(from), b = how_.machine_of(to);
  const auto own = how_.inside.occupied(bytes);
  const auto leaves = out_[static_cast<std::size_t>(from)].serve(clock_.now(), own);
  at_first_byte(from, leaves, [=, this, arrived = std::move(arrived)]() mutable {
    const auto& link = how_.between_machines(a, b);
    auto& sender = machines_[static_cast<std::size_t>(a)];
    const auto on_port = sender.port.occupied(bytes), on_link = link.occupied(bytes);
    const auto passed = sender.out.serve(clock_.now(), on_port);
    const auto begin = links_[{a, b}].serve(passed, on_link);
    const auto last =
      std::max({leaves + own, passed + on_port, begin + on_link}) + link.latency;
    at_first_byte(from, begin + link.latency,
                  [=, this, arrived = std::move(arrived)]() mutable {
                    auto& receiver = machines_[static_cast<std::size_t>(b)];
                    const auto there = receiver.port.occupied(bytes);
                    const auto enters = receiver.in.serve(clock_.now(), there);
                    at_first_byte(from, enters,
                                  [=, this, last = std::max(last, enters + there),
                                   arrived = std::move(arrived)]() mutable {
                                    receive(to, own, last, std::move(arrived));
                                  });
                  });
  });
}

void interconnect::receive(int to, nanoseconds occupied, nanoseconds last_byte,
                           virtual_clock::event arrived) {
  const auto begin = in_[static_cast<std::size_t>(to)].serve(clock_.now(), occupied);
  clock_.at(std::max(begin + occupied, last_byte), std::move(arrived));
}

/// Calls `serve` when the clock shows `when`, after whatever else brings first bytes at
/// that instant has happened, in the order of senders.
void interconnect::at_first_byte(int from, nanoseconds when,
                                 virtual_clock::event serve) {
  if (when > clock_.now())
    return clock_.at(when, [this, from, serve = std::move(serve)]() mutable {
      at_first_byte(from, clock_.now(), std::move(serve));
    });
  if (arrivals_.empty())
    clock_.at_end_of_instant([this] { serve_arrivals(); }, end_of_instant::arrivals);
  arrivals_.push_back({from, std::move(serve)});
}

void interconnect::serve_arrivals() {
  auto due = std::exchange(arrivals_, {});
  std::ranges::stable_sort(due, {}, &arrival::from);
  for (auto& one : due)
    one.serve();
}

} // namespace troupe
