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
      to.steps_.push_back({step_kind::exchange, std::exchange(together, {})});
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

  void send(const collective_step& step) {
    if (step.to == part().rank) {
      const int slot = take_slot(step.sent);
      to.steps_.push_back({step_kind::keep, {}, slot, step.sent});
      held[{step.round, step.to}] = slot;
      return;
    }
    for (const auto& range : part().source.ranges(step.sent))
      if (range.size() > 0)
        together.push_back({transfer::way::send, step.to, array, range});
  }

  bool is_being_sent(const value_range& range) const {
    return std::ranges::any_of(together, [&](const planned_transfer& p) {
      return p.where.begin < range.end && range.begin < p.where.end;
    });
  }

  /// Receives values directly into the array, unless an earlier transfer still needs
  /// the range; otherwise into a slot, whose index is returned.
  int receive_into(const collective_step& step) {
    const auto ranges = part().target.ranges(step.received);
    const bool at_once = step.use == reception::copy
                         && std::ranges::none_of(ranges, [this](const auto& range) {
                              return is_being_sent(range);
                            });
    const int slot = at_once ? array : take_slot(step.received);
    std::int64_t begin = 0;
    for (const auto& range : ranges)
      if (const auto size = range.size(); size > 0) {
        together.push_back({transfer::way::receive, step.from, slot,
                            at_once ? range : value_range{begin, begin + size}});
        begin += size;
      }
    flush();
    return slot;
  }

  void receive(const collective_step& step) {
    const std::pair key{step.round, step.from};
    const auto entry = held.find(key);
    const int slot = entry != held.end() ? entry->second : receive_into(step);
    if (step.use == reception::hold) {
      held[key] = slot;
      return;
    }
    held.erase(key);
    if (slot == array)
      return;
    flush();
    to.steps_.push_back({step.use == reception::add ? step_kind::add : step_kind::copy,
                         {},
                         slot,
                         step.received});
    free.push_back(slot);
  }
};

gpu_script::gpu_script(const collective_part& part) : part_(part) {
  if (!part_.order.in_place)
    throw std::logic_error{"GPUs exchange arrays only in place"};
  writer output{*this};
  for (int i = 0; i < part_.order.steps(part_.ranks); ++i) {
    const auto step = step_of(part_, i);
    if (sends(part_, step))
      output.send(step);
    if (receives(part_, step))
      output.receive(step);
  }
  output.flush();
}

std::int64_t gpu_script::sent_to(int peer) const {
  std::int64_t sum = 0;
  for (const auto& step : steps_)
    for (const auto& p : step.together)
      if (p.way == transfer::way::send && p.peer == peer)
        sum += p.where.size();
  return sum;
}

void gpu_script::launch(const collective_memory& memory, communicator& communicator,
                        stream& stream) const {
  std::vector<buffer> slots;
  for (int i = 0; i < bound_.buffers; ++i)
    slots.push_back(memory.payloads->acquire());
  const auto data_of = [&](int slot) {
    return slot == array ? memory.source : slots[static_cast<std::size_t>(slot)].data();
  };
  std::vector<transfer> together;
  for (const auto& step : steps_) {
    if (step.kind == step_kind::exchange) {
      together.clear();
      for (const auto& p : step.together)
        together.push_back(
          {p.way, p.peer, data_of(p.slot) + p.where.begin, p.where.size()});
      communicator.exchange(together);
      continue;
    }
    auto* kept = data_of(step.slot);
    for (const auto& range : part_.target.ranges(step.range)) {
      auto* const values = memory.source + range.begin;
      if (range.size() > 0) {
        if (step.kind == step_kind::keep)
          arrays<float>::copy(values, range.size(), kept, stream);
        else if (step.kind == step_kind::copy)
          arrays<float>::copy(kept, range.size(), values, stream);
        else
          arrays<float>::add(kept, range.size(), values, stream);
      }
      kept += range.size();
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
