// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/virtual_clock.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

void virtual_clock::call_at(nanoseconds time, event callback) {
  auto& instant = time == now_ ? due_ : events_[time];
  instant.push_back(std::move(callback));
}

void virtual_clock::at_end_of_instant(event callback, end_of_instant purpose) {
  at_end_[static_cast<std::size_t>(purpose)].push_back(std::move(callback));
}

bool virtual_clock::step() {
  if (next_due_ == due_.size()) {
    due_.clear();
    next_due_ = 0;
    for (auto& waiting : at_end_)
      if (!waiting.empty()) {
        for (const auto& callback : std::exchange(waiting, {}))
          callback();
        return true;
      }
    if (events_.empty())
      return false;
    auto first = events_.extract(events_.begin());
    now_ = first.key();
    due_ = std::move(first.mapped());
  }
  const auto callback = std::move(due_[next_due_++]); // the event may add others
  callback();
  return true;
}

void virtual_clock::clear() {
  events_.clear();
  due_.clear();
  next_due_ = 0;
  for (auto& waiting : at_end_)
    waiting.clear();
}

void virtual_device::enqueue(work item, on_end ended) {
  if (stopped_)
    return;
  work_end result;
  const auto compute = [&](const std::function<void()>& run) {
    try {
      if (!result.failure)
        run_to_end(run, stream_);
    } catch (...) {
      result.failure = std::current_exception();
    }
  };
  compute(item.run);
  const auto start = std::max(clock_.now(), free_at_);
  const auto whole = cost_(item);
  const auto cost_of = [&](double share) {
    const auto cost =
      static_cast<nanoseconds>(share * static_cast<double>(whole) + 0.5);
    return share <= 1 ? std::min(whole, cost) : cost;
  };
  const auto earlier_cost = cost_of(item.start_share);
  free_at_ = start + cost_of(item.done()) - earlier_cost;
  double share = item.start_share;
  for (auto& part : item.parts) {
    compute(part.run);
    share += part.share;
    if (part.on_done && !result.failure)
      clock_.call_at(start + cost_of(share) - earlier_cost, std::move(part.on_done));
  }
  result.start = start;
  result.end = free_at_;
  under_way_.push_back({std::move(ended), std::move(result)});
  clock_.call_at(free_at_, [this] { end_first(); });
}

void virtual_device::end_first() {
  if (under_way_.empty()) // the device was stopped
    return;
  const auto first = std::move(under_way_.front());
  under_way_.erase(under_way_.begin());
  first.ended(first.result);
}

} // namespace troupe
