// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/collective.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

namespace {

std::int64_t key_of(int round, int from) {
  return (std::int64_t{round} << 32) | from;
}

/// Decodes a payload into ranges of an array, or adds the values to the array's values.
void write(const codec& coder, const float* payload,
           const std::array<value_range, 2>& ranges, float* array, reception use) {
  std::int64_t first = 0;
  for (const auto& part : ranges) {
    if (use == reception::add)
      coder.add(payload, first, part.size(), array + part.begin);
    else
      coder.decode(payload, first, part.size(), array + part.begin);
    first += part.size();
  }
}

/// The codec of memory without a codec. All threads share the object, which has no
/// state.
codec& plain_coder() {
  static const auto result = fp32_codec().make();
  return *result;
}

/// True if some ranks of a number that is no power of two get their sums in a last
/// message, while others compute theirs.
bool folds(const collective_order& order) {
  using enum collective_operation;
  return (order.operation == all_reduce && order.name == "doubling")
         || (order.operation == reduce_scatter && order.name == "halving");
}

[[noreturn]] void complain(const collective_part& part, const std::string& text) {
  throw std::logic_error("rank " + std::to_string(part.rank) + " of collective "
                         + std::to_string(part.instance) + " " + text);
}

} // namespace

collective::collective(collective_part part, collective_memory memory, sums_by adder)
  : part_(std::move(part)),
    memory_(memory),
    adder_(adder),
    steps_(part_.order.steps(part_.ranks)) {
  const int count = part_.order.chunks(part_.ranks);
  if (part_.source.count() != count || part_.target.count() != count)
    complain(part_,
             "has arrays that are not cut into " + std::to_string(count) + " chunks");
  if (part_.coding == &fp32_codec())
    return;
  if (memory_.payloads != nullptr && memory_.coder == nullptr)
    complain(part_, "has no codec for the encoding of its messages");
  if (folds(part_.order) && std::popcount(static_cast<unsigned>(part_.ranks)) > 1)
    complain(part_, "cannot encode its messages: ranks would end with different sums");
}

std::vector<collective_message> collective::begin() {
  std::vector<collective_message> out;
  started_ = true;
  advance(out);
  return out;
}

std::vector<collective_message> collective::receive(collective_message message) {
  if (message.instance != part_.instance)
    complain(part_, "got a message of collective " + std::to_string(message.instance));
  if (message.is_call())
    complain(part_, "got a call of a group of GPUs, but belongs to no group");
  if (message.to != part_.rank)
    complain(part_, "got a message to rank " + std::to_string(message.to));
  if (done())
    complain(part_, "got a message when it was done");
  std::vector<collective_message> out;
  keep(std::move(message));
  if (started_)
    advance(out);
  return out;
}

std::vector<collective_message> collective::end_sum() {
  if (!std::exchange(sums_, false))
    complain(part_, "got the end of a sum that it does not wait for");
  const auto step = step_of(part_, next_++);
  received_.erase(key_of(step.round, step.from));
  sent_ = false;
  std::vector<collective_message> out;
  advance(out);
  return out;
}

std::optional<collective::missing> collective::waits_for() const {
  if (!started_ || sums_ || done())
    return {};
  const auto step = step_of(part_, next_);
  return missing{step.from, step.round};
}

void collective::advance(std::vector<collective_message>& out) {
  if (sums_)
    return;
  for (; next_ < steps_; ++next_) {
    const auto step = step_of(part_, next_);
    if (!std::exchange(sent_, true))
      send(step, out);
    if (!receive(step))
      return;
    sent_ = false;
  }
  last_ = {};
  if (!received_.empty())
    complain(part_, "got a message that no step waits for");
}

void collective::send(const collective_step& step,
                      std::vector<collective_message>& out) {
  if (!sends(part_, step))
    return;
  const auto values = part_.source.size(step.sent);
  collective_message message{
    part_.instance, step.round, part_.rank,         step.to,
    step.sent,      values,     copy_of(step.sent), part_.coding->bytes(values)};
  if (step.to == part_.rank)
    keep(std::move(message));
  else
    out.push_back(std::move(message));
}

void collective::keep(collective_message message) {
  const auto key = key_of(message.round, message.from);
  if (!received_.emplace(key, std::move(message)).second)
    complain(part_, "got a message twice");
}

bool collective::receive(const collective_step& step) {
  if (!receives(part_, step))
    return true;
  const auto entry = received_.find(key_of(step.round, step.from));
  if (entry == received_.end())
    return false;
  if (step.use == reception::hold)
    return true;
  if (entry->second.values != part_.target.size(step.received))
    complain(part_, "expected " + std::to_string(part_.target.size(step.received))
                      + " values from rank " + std::to_string(step.from) + ", not "
                      + std::to_string(entry->second.values));
  if (step.use == reception::add && adder_ == sums_by::caller) {
    yield(entry->second, step.received);
    return false;
  }
  put(entry->second, step.received, step.use);
  received_.erase(entry);
  return true;
}

codec& collective::coder() const {
  return memory_.coder != nullptr ? *memory_.coder : plain_coder();
}

/// Returns a copy of the range. Several messages with the same values share one copy.
buffer collective::copy_of(chunk_range range) {
  if (memory_.payloads == nullptr)
    return {};
  if (last_ && last_range_ == range)
    return last_;
  last_ = {};
  auto copy = memory_.payloads->acquire();
  std::int64_t first = 0;
  for (const auto& part : part_.source.ranges(range)) {
    coder().encode(memory_.source + part.begin, part.size(), copy.data(), first);
    first += part.size();
  }
  last_ = copy;
  last_range_ = range;
  return copy;
}

void collective::put(const collective_message& message, chunk_range range,
                     reception use) {
  last_ = {};
  if (memory_.payloads != nullptr)
    write(coder(), message.payload.data(), part_.target.ranges(range), memory_.target,
          use);
}

/// The message stays stored until the sum has ended.
void collective::yield(const collective_message& message, chunk_range range) {
  last_ = {};
  sums_ = true;
  yielded_ = collective_sum{message.values, {}};
  if (memory_.payloads != nullptr)
    yielded_->run = [&coder = coder(), from = message.payload.data(),
                     places = part_.target.ranges(range), array = memory_.target] {
      write(coder, from, places, array, reception::add);
    };
}

} // namespace troupe
