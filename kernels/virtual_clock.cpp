#include "kernels/virtual_clock.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace troupe {

bool virtual_clock::later(const entry& a, const entry& b) {
  return std::tie(a.when, a.number) > std::tie(b.when, b.number);
}

void virtual_clock::at(nanoseconds when, event what) {
  events_.push_back({when, numbered_++, std::move(what)});
  std::ranges::push_heap(events_, later);
}

void virtual_clock::at_end_of_instant(event what) {
  at_end_.push_back(std::move(what));
}

bool virtual_clock::end_instant() {
  const auto due = std::exchange(at_end_, {});
  for (const auto& what : due)
    what();
  return !due.empty();
}

bool virtual_clock::advance() {
  if (events_.empty())
    return false;
  now_ = events_.front().when;
  while (!events_.empty() && events_.front().when == now_) {
    std::ranges::pop_heap(events_, later);
    const auto what = std::move(events_.back().what);
    events_.pop_back();
    what();
  }
  return true;
}

void virtual_device::enqueue(work what, on_end ended) {
  if (what.run)
    what.run();
  const auto start = std::max(clock_.now(), free_at_);
  free_at_ = start + cost_(what);
  clock_.at(free_at_,
            [ended = std::move(ended), start, end = free_at_] { ended(start, end); });
}

} // namespace troupe
