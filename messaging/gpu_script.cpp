// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/gpu_script.hpp"

#include "kernels/arrays.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace troupe {

/// Writes the steps of a script from a part's steps, one after another.
struct gpu_script::writer {
  gpu_script& to;
  std::vector<planned_transfer> together = {};  // not launched yet
  std::map<std::pair<int, int>, int> held = {}; // slots, by round and sender
  std::vector<int> free = {};                   // unused slots

  const collective_part& part() const { return to.part_; }

  void flush() {
    if (!together.empty())
      to.steps_.push_back({deed::exchange, std::exchange(together, {})});
  }

  int take_slot(chunk_range range) {
    auto& bound = to.bound_;
    bound.values = std::max(bound.values, part().target.size(range));
    if (free.empty())
      return bound.buffers++;
    const int result = free.back();
    free.pop_back();
    return result;
  }

  void give(const collective_step& step) {
    if (step.to == part().rank) {
      const int slot = take_slot(step.sent);
      to.steps_.push_back({deed::keep, {}, slot, step.sent});
      held[{step.round, step.to}] = slot;
      return;
    }
    for (const auto& place : part().source.places(step.sent))
      if (place.size() > 0)
        together.push_back({transfer::way::send, step.to, array, place});
  }

  bool is_being_given(const value_range& place) const {
    return std::ranges::any_of(together, [&](const planned_transfer& p) {
      return p.where.begin < place.end && place.begin < p.where.end;
    });
  }

  /// Receives values directly into the array, unless an earlier transfer still needs
  /// the range; otherwise into a slot, whose index is returned.
  int take(const collective_step& step) {
    const auto places = part().target.places(step.received);
    const bool at_once = step.use == reception::copy
                         && std::ranges::none_of(places, [this](const auto& place) {
                              return is_being_given(place);
                            });
    const int slot = at_once ? array : take_slot(step.received);
    std::int64_t begin = 0;
    for (const auto& place : places)
      if (const auto size = place.size(); size > 0) {
        together.push_back({transfer::way::receive, step.from, slot,
                            at_once ? place : value_range{begin, begin + size}});
        begin += size;
      }
    flush();
    return slot;
  }

  void receive(const collective_step& step) {
    const std::pair key{step.round, step.from};
    const auto found = held.find(key);
    const int slot = found != held.end() ? found->second : take(step);
    if (step.use == reception::hold) {
      held[key] = slot;
      return;
    }
    held.erase(key);
    if (slot == array)
      return;
    flush();
    to.steps_.push_back(
      {step.use == reception::add ? deed::add : deed::copy, {}, slot, step.received});
    free.push_back(slot);
  }
};

gpu_script::gpu_script(const collective_part& part) : part_(part) {
  if (!part_.order.in_place)
    throw std::logic_error{"GPUs exchange arrays in place alone"};
  writer all{*this};
  for (int i = 0; i < part_.order.steps(part_.ranks); ++i) {
    const auto step = step_of(part_, i);
    if (sends(part_, step))
      all.give(step);
    if (receives(part_, step))
      all.receive(step);
  }
  all.flush();
}

std::int64_t gpu_script::sent_to(int other) const {
  std::int64_t sum = 0;
  for (const auto& step : steps_)
    for (const auto& p : step.together)
      if (p.how == transfer::way::send && p.other == other)
        sum += p.where.size();
  return sum;
}

void gpu_script::launch(const collective_memory& memory, communicator& by,
                        stream& on) const {
  std::vector<buffer> slots;
  for (int i = 0; i < bound_.buffers; ++i)
    slots.push_back(memory.payloads->acquire());
  const auto data_of = [&](int slot) {
    return slot == array ? memory.source : slots[static_cast<std::size_t>(slot)].data();
  };
  std::vector<transfer> together;
  for (const auto& step : steps_) {
    if (step.what == deed::exchange) {
      together.clear();
      for (const auto& p : step.together)
        together.push_back(
          {p.how, p.other, data_of(p.slot) + p.where.begin, p.where.size()});
      by.exchange(together);
      continue;
    }
    auto* kept = data_of(step.slot);
    for (const auto& place : part_.target.places(step.range)) {
      auto* const there = memory.source + place.begin;
      if (place.size() > 0) {
        if (step.what == deed::keep)
          arrays<float>::copy(there, place.size(), kept, on);
        else if (step.what == deed::copy)
          arrays<float>::copy(kept, place.size(), there, on);
        else
          arrays<float>::add(kept, place.size(), there, on);
      }
      kept += place.size();
    }
  }
}

payload_bound copies_of(const collective_part& part, int under_way, bool on_gpus) {
  auto result = payloads_of(part);
  result.buffers *= under_way;
  if (on_gpus) {
    const auto slots = gpu_script{part}.slots();
    result.buffers = std::max(result.buffers, slots.buffers);
    result.values = std::max(result.values, slots.values);
  }
  return result;
}

} // namespace troupe
